#pragma once
// A DeviceQueue moves the bytes of the files on one device: a board with the waiting requests, and
// the threads that serve it. A PosixEngine has one for each device.
//
// Thread contract: all methods from any thread. The destructor of each implementation waits for
// what was submitted.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "io/common/posix_file.hpp"
#include "io/common/request_board.hpp"

namespace strata {

class DeviceQueue {
 public:
  DeviceQueue(std::uint64_t chunk_bytes, int number) : board_(chunk_bytes, number) {}
  virtual ~DeviceQueue() = default;
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;

  RequestBoard& board() { return board_; }
  const RequestBoard& board() const { return board_; }

  // To be called when the board has got something to do.
  virtual void wake() = 0;
  // Gives up what is kept of a file whose requests have all completed.
  virtual void forget(PosixFile& file) = 0;
  virtual void register_memory(std::span<std::byte> memory) = 0;
  virtual void unregister_memory(std::span<std::byte> memory) = 0;
  virtual std::string describe() const = 0;

 private:
  RequestBoard board_;
};

// Makes the queue of that number. Throws SystemError.
using QueueFactory = std::function<std::unique_ptr<DeviceQueue>(int number)>;

}  // namespace strata
