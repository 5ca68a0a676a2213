#pragma once
// A RingLoop keeps the kernel busy: it fills free slots with the board's next pieces, waits, and
// continues or finishes what came back. The number in flight never waits for a request to end.
//
// When the kernel goes on refusing the ring's system call, every piece that it has not accepted
// fails with its errno, and so do those that come later, until the call succeeds again.
//
// Thread contract: made, used and destroyed by the engine's one thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/common/posix_file.hpp"
#include "io/common/request_board.hpp"
#include "io/uring/buffer_table.hpp"
#include "io/uring/event_descriptor.hpp"
#include "io/uring/ring.hpp"

namespace strata {

class RingLoop {
 public:
  // `bell`: rings when the board has news. Throws SystemError.
  RingLoop(RequestBoard& board, unsigned depth, std::uint64_t chunk_bytes,
           const EventDescriptor& bell, Ring::Enter enter = &Ring::enter);
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

  void listen();
  void exchange();
  void refused(int error_number);
  void fail_unaccepted(int error_number);
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
  const EventDescriptor& bell_;
  bool listening_ = false;
  int num_refusals_ = 0;  // of the ring's system call, in a row
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> free_;
  std::vector<int> free_file_indices_;
  std::uint64_t unregistered_bytes_ = 0;  // in flight
};

}  // namespace strata
