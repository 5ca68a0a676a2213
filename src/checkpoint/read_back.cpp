#include "read_back.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

// In flight and taken at a time while others are being written. With two chunks in flight the
// writes keep most of the drive, and the whole is as fast as with more.
constexpr std::size_t chunks_beside_writes = 2, pieces_beside_writes = 4;

struct GivenUp {};

}  // namespace

void need_as_written(const PieceReader& reader, const PieceOutcome& outcome) {
  const std::string damage = reader.damage(outcome) + reader.disorder_behind(outcome);
  if (!outcome.failure.ok()) throw SystemError(damage, outcome.failure.error_number);
  if (!damage.empty()) throw Error("what was written does not come back: " + damage);
}

ReadBack::ReadBack(IoEngine& engine, std::string folder, const std::vector<StateVector>& vectors,
                   const VectorFiles& files)
    : reader_(engine, std::move(folder), vectors, files), thread_([this] { work(); }) {}

ReadBack::~ReadBack() { end(true); }

void ReadBack::written(std::list<StatePiece>& piece) noexcept {
  const std::lock_guard lock(mutex_);
  written_.splice(written_.end(), piece);
  changed_.notify_one();
}

void ReadBack::check() const {
  if (has_failed_) std::rethrow_exception(failure_);
}

void ReadBack::finish() {
  end(false);
  check();
}

void ReadBack::end(bool gives_up) {
  {
    const std::lock_guard lock(mutex_);
    is_last_ = true;
    gives_up_ = gives_up;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void ReadBack::work() {
  try {
    for (Batch batch = take(); !batch.pieces.empty(); batch = take()) compare(batch);
  } catch (const GivenUp&) {
  } catch (...) {
    failure_ = std::current_exception();
    has_failed_ = true;
  }
}

ReadBack::Batch ReadBack::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !written_.empty() || is_last_; });
  const bool is_alone = is_last_;
  auto end = written_.begin();
  std::advance(end, std::min(written_.size(), is_alone ? written_.size() : pieces_beside_writes));
  Batch batch{{written_.begin(), end}, {.priority = IoPriority::write_back}};
  if (!is_alone) batch.pace.chunks_in_flight = chunks_beside_writes;
  written_.erase(written_.begin(), end);
  return batch;
}

void ReadBack::compare(const Batch& batch) {
  const auto stop_if_given_up = [&](std::uint64_t, std::span<const std::byte>) {
    const std::lock_guard lock(mutex_);
    if (gives_up_) throw GivenUp();
  };
  reader_.read(batch.pieces, batch.pace, stop_if_given_up,
               [&](const PieceOutcome& outcome) { need_as_written(reader_, outcome); });
}

}  // namespace strata
