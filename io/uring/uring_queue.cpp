#include "io/uring/uring_queue.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "io/common/posix_engine.hpp"
#include "io/common/request_check.hpp"
#include "strata/core/bytes.hpp"

namespace strata {

UringQueue::UringQueue(const IoOptions& options, int number)
    : DeviceQueue(options.chunk_bytes, number), options_(options) {
  std::promise<void> ready;
  std::future<void> started = ready.get_future();
  thread_ =
      std::jthread([this, promise = std::move(ready)]() mutable { serve(std::move(promise)); });
  started.get();
}

UringQueue::~UringQueue() {
  board().drain();
  board().stop();
  bell_.signal();
}

void UringQueue::serve(std::promise<void> ready) {
  std::optional<RingLoop> loop;
  try {
    loop.emplace(board(), static_cast<unsigned>(options_.queue_depth), options_.chunk_bytes, bell_);
    ready.set_value();
  } catch (...) {
    return ready.set_exception(std::current_exception());
  }
  run(*loop);
}

void UringQueue::run(RingLoop& loop) {
  while (!board().stopped() || !loop.idle()) {
    run_tasks(loop);
    loop.turn();
  }
}

void UringQueue::run_tasks(RingLoop& loop) {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(tasks_mutex_);
    tasks.swap(tasks_);
  }
  for (Task& task : tasks) task(loop);
}

void UringQueue::on_ring(std::function<void(RingLoop&)> action) const {
  Task task(std::move(action));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(tasks_mutex_);
    tasks_.push_back(std::move(task));
  }
  bell_.signal();
  done.get();
}

void UringQueue::forget(PosixFile& file) {
  on_ring([&](RingLoop& loop) { loop.forget(file); });
}

void UringQueue::register_memory(std::span<std::byte> memory) {
  on_ring([&](RingLoop& loop) { loop.buffers().add(memory); });
}

void UringQueue::unregister_memory(std::span<std::byte> memory) {
  on_ring([&](RingLoop& loop) { loop.buffers().remove(memory); });
}

std::string UringQueue::describe() const {
  std::string ring;
  on_ring([&](RingLoop& loop) { ring = loop.describe(); });
  return fmt::format("io_uring: depth {}, pieces of {}, {}", options_.queue_depth,
                     format_bytes(options_.chunk_bytes), ring);
}

std::unique_ptr<IoEngine> make_uring_engine(const IoOptions& options) {
  check_options(options);
  return std::make_unique<PosixEngine>("uring", options, [options](int number) {
    return std::make_unique<UringQueue>(options, number);
  });
}

}  // namespace strata
