#pragma once
// The queue of the `uring` engine: one thread owns a ring; callers reach it through the board and
// an eventfd.

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/common/device_queue.hpp"
#include "io/uring/event_descriptor.hpp"
#include "io/uring/ring_loop.hpp"

namespace strata {

class UringQueue : public DeviceQueue {
 public:
  UringQueue(const IoOptions& options, int number);  // Throws SystemError.
  ~UringQueue() override;

  void wake() override { bell_.signal(); }
  void forget(PosixFile& file) override;
  void register_memory(std::span<std::byte> memory) override;
  void unregister_memory(std::span<std::byte> memory) override;
  std::string describe() const override;

 private:
  using Task = std::packaged_task<void(RingLoop&)>;

  void serve(std::promise<void> ready);
  void run(RingLoop& loop);
  void run_tasks(RingLoop& loop);
  // Runs on the queue's thread, the only one that may touch the ring, and is waited for.
  void on_ring(std::function<void(RingLoop&)> action) const;

  const IoOptions options_;
  const EventDescriptor bell_;
  mutable std::mutex tasks_mutex_;
  mutable std::vector<Task> tasks_;  // guarded by tasks_mutex_
  std::jthread thread_;
};

}  // namespace strata
