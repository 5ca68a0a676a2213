#include "kernels/cpu/parallel.hpp"

#include <hwy/cache_control.h>
#include <sched.h>

#include "strata/core/clock.hpp"

namespace strata::cpu {
namespace {

// Batches that may be open at once before the list of them has to grow.
constexpr std::size_t usual_batches = 64;

// A step makes hundreds of short calls one after the other; a thread that sleeps between them costs
// a wake-up each.
constexpr std::int64_t spin_ns = 5'000;

// Whether `done` came true within the spin.
template <typename Done>
bool spin(Done done) {
  if (done()) return true;
  for (const std::int64_t end = now_ns() + spin_ns; now_ns() < end;)
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      hwy::Pause();
    }
  return done();
}

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

struct Parallel::Batch {
  std::int64_t num_tasks;
  Call call;
  void* callee;
  std::atomic<std::int64_t> next{0};
  std::atomic<int> num_helpers{0};  // Changed under the pool's mutex_.
  // Guarded by the pool's mutex_.
  std::exception_ptr failure = nullptr;

  // Takes tasks until none is left. Returns the failure that ended it early, if any.
  std::exception_ptr take_tasks() {
    try {
      for (std::int64_t task = next++; task < num_tasks; task = next++) call(callee, task);
      return nullptr;
    } catch (...) {
      next = num_tasks;
      return std::current_exception();
    }
  }
};

Parallel::Parallel(int num_threads) {
  open_.reserve(usual_batches);
  const int wanted = num_threads > 0 ? num_threads : usable_cores();
  for (int worker = 1; worker < wanted; ++worker) workers_.emplace_back([this] { work(); });
}

Parallel::~Parallel() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  opened_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Parallel::run(std::int64_t num_tasks, Call call, void* callee) {
  Batch batch{.num_tasks = num_tasks, .call = call, .callee = callee};
  open(batch);
  const std::exception_ptr failure = batch.take_tasks();
  close(batch);
  if (failure != nullptr) std::rethrow_exception(failure);
  if (batch.failure != nullptr) std::rethrow_exception(batch.failure);
}

void Parallel::open(Batch& batch) {
  {
    const std::lock_guard lock(mutex_);
    open_.push_back(&batch);
    num_open_ = static_cast<int>(open_.size());
  }
  opened_.notify_all();
}

// No helper joins a batch that is not open, so once the last has left nobody holds it.
void Parallel::close(Batch& batch) {
  std::unique_lock lock(mutex_);
  remove(batch);
  lock.unlock();
  spin([&] { return batch.num_helpers == 0; });
  lock.lock();
  left_.wait(lock, [&] { return batch.num_helpers == 0; });
}

void Parallel::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (open_.empty() && !stopping_) {
      lock.unlock();
      spin([&] { return num_open_ > 0; });
      lock.lock();
    }
    opened_.wait(lock, [&] { return stopping_ || !open_.empty(); });
    if (stopping_) return;
    // The batch with the fewest helpers: two callers share the pool evenly.
    Batch& batch =
        **std::min_element(open_.begin(), open_.end(), [](const Batch* a, const Batch* b) {
          return a->num_helpers.load() < b->num_helpers.load();
        });
    ++batch.num_helpers;
    lock.unlock();
    const std::exception_ptr failure = batch.take_tasks();
    lock.lock();
    if (failure != nullptr) batch.failure = failure;
    remove(batch);
    if (--batch.num_helpers == 0) left_.notify_all();
  }
}

void Parallel::remove(Batch& batch) {
  std::erase(open_, &batch);
  num_open_ = static_cast<int>(open_.size());
}

}  // namespace strata::cpu
