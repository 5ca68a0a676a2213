#pragma once
// The names of the tiles in a versioned store, which say what each holds: so the store of one run
// can be read by another that cuts its state in another way. Pure; any thread.
//
//   master/layers.3 f32 [8192, 12305) of 12305, room 8192
//
// are the last elements of that vector, in a tile that has room for as many.

#include <cstdint>
#include <optional>
#include <string>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/program/program.hpp"

namespace strata {

struct StateTile {
  StateVector vector;  // its dtype is the tile's: of a split master u16
  std::int64_t first = 0, count = 0;
  std::int64_t room = 0;  // elements of the tile; what is behind `count` pads it
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(storage_bytes(vector.dtype, room));
  }
};
StateTile state_tile(const Program& program, ShardId shard, int tile);
std::string state_tile_name(const StateTile& tile);
// None when it is no such name.
std::optional<StateTile> parse_state_tile_name(const std::string& name);

}  // namespace strata
