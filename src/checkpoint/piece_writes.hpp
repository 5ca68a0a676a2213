#pragma once
// The PieceWrites of one writer are its transfers under way: each tells its caller how it ended,
// and the first failure is kept. Pieces that arrived go on to be read back, where that is asked.
//
// Thread contract: start() and has_failed() from any thread; the rest from one.

#include <condition_variable>
#include <mutex>

#include "read_back.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

class PieceWrites {
 public:
  explicit PieceWrites(IoEngine& engine) : engine_(engine) {}
  ~PieceWrites() { wait(); }
  PieceWrites(const PieceWrites&) = delete;
  PieceWrites& operator=(const PieceWrites&) = delete;

  // `request` carries the caller's completion. `read_back`, if any, gets `piece` when it is
  // written, and outlives the transfer.
  void start(IoRequest request, const StatePiece& piece, ReadBack* read_back);
  bool has_failed() const;
  // Until none is under way; then the first failure, or a good result.
  IoResult wait();

 private:
  class Transfer;
  void ended(const IoResult& result);

  IoEngine& engine_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  // Guarded by mutex_.
  int num_under_way_ = 0;
  IoResult failure_;
};

}  // namespace strata
