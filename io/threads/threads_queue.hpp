#pragma once
// The queue of the `threads` engine: a pool of threads in pread and pwrite. For machines whose
// kernel refuses io_uring, as containers often do.

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "io/common/device_queue.hpp"

namespace strata {

class ThreadsQueue : public DeviceQueue {
 public:
  // `reason`: why this engine was chosen, for describe().
  ThreadsQueue(const IoOptions& options, std::string reason, int number);
  ~ThreadsQueue() override;

  void wake() override {}  // the threads sleep on the board
  void forget(PosixFile&) override {}
  void register_memory(std::span<std::byte>) override {}  // pread and pwrite have nothing to pin
  void unregister_memory(std::span<std::byte>) override {}
  std::string describe() const override;

 private:
  void work();

  const std::uint64_t chunk_bytes_;
  const std::string reason_;
  std::vector<std::jthread> threads_;
};

// As make_threads_engine(), with the reason why it was chosen.
std::unique_ptr<IoEngine> make_threads_engine(const IoOptions& options, const std::string& reason);

}  // namespace strata
