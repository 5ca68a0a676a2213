#include "train/checkpoint_sink.hpp"

#include <algorithm>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {

CheckpointSink::CheckpointSink(const PlannedRun& run, std::span<std::byte> memory)
    : pieces_(run), buffers_(run.program, memory) {
  std::ranges::fill(memory, std::byte{0});  // No page is asked of the system amid a step.
}

void CheckpointSink::arm(CheckpointWriter& writer) {
  const std::lock_guard lock(mutex_);
  ensure(state_ == State::idle && !is_busy_);
  buffers_.reset();
  writer_ = &writer;
  num_left_ = pieces_.all().size();
  failure_.clear();
  state_ = State::taking;
}

void CheckpointSink::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_over(); });
  state_ = State::idle;
  writer_ = nullptr;
  if (!failure_.empty()) throw Error(failure_);
}

void CheckpointSink::give_up() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::taking) return;
  state_ = State::dropping;
  changed_.notify_all();
}

void CheckpointSink::save(ShardId shard, int tile, std::span<const std::byte> bytes,
                          std::span<const std::byte> weight) {
  const TilePiece* piece = pieces_.find(shard, tile);
  CheckpointWriter* writer = piece == nullptr ? nullptr : begin();
  if (writer == nullptr) return;
  std::string failure;
  try {
    pieces_.write(*piece, bytes, weight, buffers_, *writer);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  end(failure);
}

CheckpointWriter* CheckpointSink::begin() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::taking || num_left_ == 0) return nullptr;
  is_busy_ = true;
  return writer_;
}

void CheckpointSink::end(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  is_busy_ = false;
  --num_left_;
  if (failure_.empty()) failure_ = failure;
  if (!failure.empty() || buffers_.has_failed()) state_ = State::dropping;
  if (is_over()) changed_.notify_all();
}

}  // namespace strata
