#pragma once
// The TilePieces of a rank tell which piece of which of a checkpoint's vectors each of its own
// tiles of master and moments holds, and make the one of the other: q8 is packed anew, a split
// master joined. Elements in own tiles of what every rank holds whole are of the rank whose slice
// they are. Thread contract: constant after construction.

#include <cstddef>
#include <span>
#include <vector>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/train/planned_run.hpp"
#include "save_buffers.hpp"
#include "state_pieces.hpp"

namespace strata {

struct TilePiece {
  ShardId shard, weight;  // the weight is a split master's; else invalid
  int tile = -1, weight_tile = -1;
  int vector = -1;  // index of state_vectors()
  StateSpan span;
};

class TilePieces {
 public:
  explicit TilePieces(const PlannedRun& run);

  // In the order of the vectors.
  const std::vector<TilePiece>& all() const { return pieces_; }
  // Null: the tile has no element of the model.
  const TilePiece* find(ShardId shard, int tile) const;

  // Makes the piece of the tile's bytes and, of a split master, its weight's, in the next of the
  // buffers, and starts its write. Not where the writer has failed: the buffers have too then.
  void write(const TilePiece& piece, std::span<const std::byte> bytes,
             std::span<const std::byte> weight, SaveBuffers& buffers,
             CheckpointWriter& writer) const;

 private:
  void add(int vector);
  void add(TilePiece piece);
  void fill(const TilePiece& piece, std::span<const std::byte> bytes,
            std::span<const std::byte> weight, std::span<std::byte> target) const;

  const Program& program_;
  const std::vector<StateVector> vectors_;
  std::vector<TilePiece> pieces_;
  std::vector<std::vector<int>> index_;  // of pieces_, by shard and tile; -1: none
};

}  // namespace strata
