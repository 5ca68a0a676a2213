#pragma once
// A RingLoop keeps the kernel busy: it fills free slots with the board's next pieces, waits, and
// continues or finishes what came back. The number in flight never waits for a request to end.
//
// Thread contract: made, used and destroyed by the engine's one thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/common/posix_file.hpp"
#include "io/common/request_board.hpp"
#include "io/uring/buffer_table.hpp"
#include "io/uring/ring.hpp"

namespace strata {

class RingLoop {
 public:
  // `wake_descriptor`: an eventfd written when the board has news. Throws SystemError.
  RingLoop(RequestBoard& board, unsigned depth, std::uint64_t chunk_bytes, int wake_descriptor);
  ~RingLoop();  // Only when idle().
  RingLoop(const RingLoop&) = delete;
  RingLoop& operator=(const RingLoop&) = delete;

  void turn();
  bool idle() const { return free_.size() == slots_.size(); }

  BufferTable& buffers() { return buffers_; }
  // Ends the kernel's hold on a file whose requests have all completed.
  void forget(PosixFile& file);
  std::string describe() const;

 private:
  struct Slot {
    Piece piece;
    std::uint64_t unregistered_bytes = 0;
  };

  void arm_wake();
  void woken();
  void exchange();
  void fill();
  bool may_take() const;
  void begin(Piece piece);
  void issue(std::uint64_t slot);
  void prepare(io_uring_sqe& entry, const Piece& piece) const;
  int file_index(PosixFile& file);
  void handle(std::uint64_t user_data, int result);
  void end(std::uint64_t slot);

  RequestBoard& board_;
  Ring ring_;
  BufferTable buffers_;
  const std::uint64_t chunk_bytes_;
  const int wake_descriptor_;
  std::uint64_t wake_count_ = 0;  // where the kernel puts what it read from the eventfd
  bool wake_armed_ = false;
  bool closing_ = false;
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> free_;
  std::vector<int> free_file_indices_;
  std::uint64_t unregistered_bytes_ = 0;  // in flight
};

}  // namespace strata
