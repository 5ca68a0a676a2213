#include "kernels/cpu/parallel.hpp"

#include <hwy/cache_control.h>
#include <sched.h>

#include <array>
#include <numeric>
#include <string>
#include <system_error>

#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"

namespace strata::cpu {
namespace {

// Batches that may be open at once before the list of them has to grow.
constexpr std::size_t usual_batches = 64;

// A batch lives on its caller's stack, so its queues are bounded. Further nodes share the last.
constexpr std::size_t queues_max = 16;

// Two nodes' queues never share a cache line, nor the pair of lines that a prefetcher fetches.
constexpr std::size_t queue_alignment = 128;

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

std::vector<int> with_bounded_queues(std::vector<int> threads_of_node) {
  while (threads_of_node.size() > queues_max) {
    const int last = threads_of_node.back();
    threads_of_node.pop_back();
    threads_of_node.back() += last;
  }
  return threads_of_node;
}

}  // namespace

// The tasks [next, end) of one node, taken one by one.
class alignas(queue_alignment) Parallel::TaskQueue {
 public:
  void fill(std::int64_t begin, std::int64_t end) {
    next_.store(begin, std::memory_order_relaxed);
    end_ = end;
  }
  void drop() { next_ = end_; }
  void run_all(Call call, void* callee) {
    for (std::int64_t task = next_++; task < end_; task = next_++) call(callee, task);
  }

 private:
  std::atomic<std::int64_t> next_{0};
  std::int64_t end_ = 0;
};

struct Parallel::Batch {
  Call call;
  void* callee;
  std::size_t num_queues;
  std::atomic<int> num_helpers{0};  // Changed under the pool's mutex_.
  // Guarded by the pool's mutex_.
  std::exception_ptr failure = nullptr;
  std::array<TaskQueue, queues_max> queues = {};

  // Takes tasks until none is left, those of its own node first. Returns the failure that ended it
  // early, if any.
  std::exception_ptr take_tasks(std::size_t node) {
    try {
      for (std::size_t i = 0; i < num_queues; ++i)
        queues[(node + i) % num_queues].run_all(call, callee);
      return nullptr;
    } catch (...) {
      for (std::size_t i = 0; i < num_queues; ++i) queues[i].drop();
      return std::current_exception();
    }
  }
};

Parallel::Parallel(int num_threads, const OnStart& on_start)
    : Parallel(std::vector<int>{num_threads > 0 ? num_threads : usable_cores()}, on_start) {}

Parallel::Parallel(const std::vector<int>& threads_of_node, const OnStart& on_start)
    : threads_of_node_(with_bounded_queues(threads_of_node)),
      num_threads_(std::accumulate(threads_of_node.begin(), threads_of_node.end(), 0)) {
  ensure(!threads_of_node.empty() && *std::ranges::min_element(threads_of_node) > 0);
  open_.reserve(usual_batches);
  workers_.reserve(static_cast<std::size_t>(num_threads_) - 1);
  try {
    for (std::size_t node = 0; node < threads_of_node.size(); ++node)
      start_threads(node, threads_of_node[node] - (node == 0 ? 1 : 0), on_start);
  } catch (...) {  // The system has no thread left: those that run must end first.
    stop_threads();
    throw;
  }
  await_start();
}

void Parallel::start_threads(std::size_t node, int count, const OnStart& on_start) {
  const auto start = [&] {
    workers_.emplace_back([this, node, &on_start] {
      if (on_start) on_start(node);
      work(std::min(node, queues_max - 1));
    });
  };
  try {
    for (int i = 0; i < count; ++i) start();
  } catch (const std::system_error& error) {
    throw SystemError("start",
                      "thread " + std::to_string(workers_.size() + 1) + " of " +
                          std::to_string(num_threads_) + " for kernels",
                      error.code().value());
  }
}

void Parallel::await_start() {
  std::unique_lock lock(mutex_);
  started_.wait(lock, [&] { return num_started_ == workers_.size(); });
}

Parallel::~Parallel() { stop_threads(); }

void Parallel::stop_threads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  opened_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Parallel::run(std::int64_t num_tasks, Call call, void* callee) {
  Batch batch{.call = call, .callee = callee, .num_queues = threads_of_node_.size()};
  divide(batch, num_tasks);
  open(batch);
  const std::exception_ptr failure = batch.take_tasks(0);
  close(batch);
  if (failure != nullptr) std::rethrow_exception(failure);
  if (batch.failure != nullptr) std::rethrow_exception(batch.failure);
}

void Parallel::divide(Batch& batch, std::int64_t num_tasks) const {
  std::int64_t begin = 0, threads = 0;
  for (std::size_t node = 0; node < threads_of_node_.size(); ++node) {
    threads += threads_of_node_[node];
    const std::int64_t end = num_tasks * threads / num_threads_;
    batch.queues[node].fill(begin, end);
    begin = end;
  }
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

void Parallel::work(std::size_t node) {
  std::unique_lock lock(mutex_);
  ++num_started_;
  started_.notify_all();
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
    const std::exception_ptr failure = batch.take_tasks(node);
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
