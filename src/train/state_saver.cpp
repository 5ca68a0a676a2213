#include "train/state_saver.hpp"

#include <algorithm>
#include <optional>

#include "io/store/aligned_memory.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/saved_pieces.hpp"
#include "train/save_buffers.hpp"
#include "train/state_pieces.hpp"
#include "train/tile_pieces.hpp"

namespace strata {
namespace {

constexpr std::uint64_t num_buffers = saved_pieces_in_flight;

// Tile after tile, through all of its memory.
class StateSaver {
 public:
  StateSaver(const PlannedRun& run, StateAccess& state, CheckpointWriter& writer,
             std::span<std::byte> memory)
      : pieces_(run),
        state_(state),
        writer_(writer),
        low_bits_(memory.first(low_bits_bytes(run.program))),
        buffers_(run.program, memory.subspan(low_bits_.size())) {}

  // Of a split master: where its low bits stand while its weights are read.
  static std::size_t low_bits_bytes(const Program& program) {
    return has_split_master(program) ? static_cast<std::size_t>(SaveBuffers::bytes_of_one(program))
                                     : 0;
  }

  static std::uint64_t memory_bytes(const Program& program) {
    return num_buffers * SaveBuffers::bytes_of_one(program) + low_bits_bytes(program);
  }

  void save(const std::atomic<bool>& given_up) {
    for (const TilePiece& piece : pieces_.all()) {
      if (given_up || buffers_.has_failed()) return;
      save(piece);
    }
  }

 private:
  void save(const TilePiece& piece) {
    std::span<const std::byte> bytes = state_.read(piece.shard, piece.tile), weight;
    if (piece.weight.valid()) {
      std::ranges::copy(bytes, low_bits_.begin());
      bytes = low_bits_.first(bytes.size());
      weight = state_.read(piece.weight, piece.weight_tile);
    }
    pieces_.write(piece, bytes, weight, buffers_, writer_);
  }

  const TilePieces pieces_;
  StateAccess& state_;
  CheckpointWriter& writer_;
  const std::span<std::byte> low_bits_;
  SaveBuffers buffers_;  // last: they wait for their writes
};

}  // namespace

void save_state(const PlannedRun& run, StateAccess& state, CheckpointWriter& writer,
                std::span<std::byte> memory, const std::atomic<bool>& given_up) {
  std::optional<AlignedMemory> own;
  if (memory.empty()) {
    own.emplace(checkpoint_alignment, StateSaver::memory_bytes(run.program),
                "writing a checkpoint");
    memory = own->span();
  }
  StateSaver(run, state, writer, memory).save(given_up);
}

std::uint64_t save_buffer_bytes(const Program& program) {
  return StateSaver::memory_bytes(program);
}

}  // namespace strata
