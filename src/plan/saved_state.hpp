#pragma once
// What of a rank's state goes to a checkpoint while training goes on, and what that takes.

#include <cstdint>
#include <string_view>

#include "plan/roles.hpp"
#include "strata/core/bytes.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/saved_pieces.hpp"

namespace strata {

// The schedule of a step of "train" that also saves.
inline constexpr std::string_view saving_schedule = "train_save";

// The sequence whose steps a schedule makes; nullptr: there is none.
inline const Sequence* sequence_of(const Program& program, const Schedule& schedule) {
  return program.sequence(schedule.name == saving_schedule ? "train" : schedule.name);
}

// A tile that this rank saves: it lies in the rank's own slice, and not in its padding alone.
inline bool is_saved(const Program& program, ShardId shard, int tile) {
  return is_optimizer_state(program.shard(shard).role) && program.is_own(shard, tile) &&
         program.place_begin(shard, program.place(shard, tile)) < program.model_elements(shard);
}

// A split master is saved joined with its weight.
inline bool is_split(const Program& program, ShardId shard) {
  return program.shard(shard).dtype == DType::u16;
}

// A store keeps the tile of a versioned run in two places.
inline bool is_versioned(const Policy& policy, Role role) {
  return policy.versioned_state && is_optimizer_state(role);
}

// Of what is fetched to be saved: one tile is saved while the next is fetched, each with the weight
// of a split master beside it.
inline constexpr int checkpoint_slots = 4;

// Pieces on their way to the drive, a page more for a piece that begins in the middle of one, and
// one more of these to join a split master in.
inline std::uint64_t save_buffers_bytes(const Program& program) {
  constexpr std::uint64_t buffers = saved_pieces_in_flight + 1, page = 4096;
  const std::uint64_t tile = static_cast<std::uint64_t>(program.tile_elements) * sizeof(float);
  return buffers * (align_up(tile, page) + page);
}

}  // namespace strata
