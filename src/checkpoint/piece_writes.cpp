#include "piece_writes.hpp"

#include <list>
#include <memory>

namespace strata {

// Owns itself until it has ended.
class PieceWrites::Transfer final : public IoCompletion {
 public:
  Transfer(PieceWrites& writes, IoCompletion* caller, const StatePiece& piece, ReadBack* read_back)
      : writes_(writes), caller_(caller), piece_({piece}), read_back_(read_back) {}
  void complete(const IoResult& result) noexcept override {
    const std::unique_ptr<Transfer> self(this);
    caller_->complete(result);
    if (result.ok() && read_back_ != nullptr) read_back_->written(piece_);
    writes_.ended(result);
  }

 private:
  PieceWrites& writes_;
  IoCompletion* caller_;
  std::list<StatePiece> piece_;
  ReadBack* read_back_;
};

void PieceWrites::start(IoRequest request, const StatePiece& piece, ReadBack* read_back) {
  auto transfer = std::make_unique<Transfer>(*this, request.completion, piece, read_back);
  {
    const std::lock_guard lock(mutex_);
    ++num_under_way_;
  }
  request.completion = transfer.release();
  engine_.submit({&request, 1});
}

bool PieceWrites::has_failed() const {
  const std::lock_guard lock(mutex_);
  return !failure_.ok();
}

IoResult PieceWrites::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return num_under_way_ == 0; });
  return failure_;
}

void PieceWrites::ended(const IoResult& result) {
  // Notifies under the lock: the writer may be gone as soon as it is released.
  const std::lock_guard lock(mutex_);
  if (!result.ok() && failure_.ok()) failure_ = result;
  if (--num_under_way_ == 0) idle_.notify_all();
}

}  // namespace strata
