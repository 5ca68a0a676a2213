#pragma once
// A CheckpointSink takes what the save ops of one step hand over and has it written, while the step
// and those after it go on. What goes wrong there is the checkpoint's failure, never the step's.
// Thread contract: save() as StateSink says; the rest from any thread, one at a time but for
// give_up().

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/train/planned_run.hpp"
#include "save_buffers.hpp"
#include "tile_pieces.hpp"

namespace strata {

class CheckpointSink final : public StateSink {
 public:
  // `memory`: the plan's save buffers, which it touches.
  CheckpointSink(const PlannedRun& run, std::span<std::byte> memory);

  // The next tiles are the writer's, which lives until wait() has returned.
  void arm(CheckpointWriter& writer);
  // Until all tiles were taken, or what comes is dropped: because it was given up, or the writer
  // has failed, whose finish() tells. Throws Error when it could not make sense of a tile.
  void wait();
  // Drops what still comes.
  void give_up();
  // Dropped where no checkpoint waits for it.
  void save(ShardId shard, int tile, std::span<const std::byte> bytes,
            std::span<const std::byte> weight) override;

 private:
  enum class State : std::uint8_t { idle, taking, dropping };
  CheckpointWriter* begin();
  void end(const std::string& failure);
  bool is_over() const { return !is_busy_ && (state_ != State::taking || num_left_ == 0); }

  const TilePieces pieces_;
  SaveBuffers buffers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  State state_ = State::idle;
  bool is_busy_ = false;  // save() is at a tile
  CheckpointWriter* writer_ = nullptr;
  std::size_t num_left_ = 0;
  std::string failure_;
};

}  // namespace strata
