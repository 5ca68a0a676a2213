// Tiles, and the slices of several ranks that they lie in.

#include "program/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int never = 4;  // no stage slices it

// The first stage that slices a role.
int slicing_stage(Role role) {
  switch (role) {
    case Role::master:
    case Role::moment1:
    case Role::moment2:
      return 1;
    case Role::gradient:
      return 2;
    case Role::weight:
      return 3;
    default:
      return never;
  }
}

bool is_model_state(Role role) { return slicing_stage(role) < never; }

void check_sharing(const Program& program, const Shard& shard) {
  const std::int64_t slice = program.slice_elements(shard.id);
  const Sharing right = program.slices(shard.role) ? Sharing::sliced : Sharing::replicated;
  if (shard.sharing != right || shard.whole_count <= 0 || slice % norm_chunk_elements != 0 ||
      program.whole_elements(shard.id) < shard.whole_count ||
      (right == Sharing::replicated && shard.count != slice * program.world))
    throw ConfigError(
        fmt::format("program: shard '{}' is not shared as {} ranks of ZeRO stage {} share it",
                    shard.name, program.world, program.zero_stage));
}

}  // namespace

void check_ranks(const Program& program) {
  if (program.world < 1 || program.rank < 0 || program.rank >= program.world)
    throw ConfigError(
        fmt::format("program: rank {} of {} does not exist", program.rank, program.world));
  if (program.zero_stage < 0 || program.zero_stage > 3)
    throw ConfigError(
        fmt::format("program: ZeRO stage {} is not one of 0, 1, 2, 3", program.zero_stage));
  if (program.world == 1) return;
  for (const Shard& shard : program.shards)
    if (is_model_state(shard.role)) check_sharing(program, shard);
}

bool Program::slices(Role role) const { return world > 1 && zero_stage >= slicing_stage(role); }

Shard Program::shared(Shard whole) const {
  if (world == 1) return whole;
  const std::int64_t slice =
      ceil_div(ceil_div(whole.count, std::int64_t{world}), norm_chunk_elements) *
      norm_chunk_elements;
  whole.whole_count = whole.count;
  whole.sharing = slices(whole.role) ? Sharing::sliced : Sharing::replicated;
  whole.count = whole.sharing == Sharing::sliced ? slice : slice * world;
  return whole;
}

int Program::num_slices(ShardId id) const { return is_model_state(shard(id).role) ? world : 1; }

std::int64_t Program::slice_elements(ShardId id) const {
  const Shard& s = shard(id);
  return s.sharing == Sharing::sliced ? s.count : s.count / num_slices(id);
}

std::int64_t Program::whole_elements(ShardId id) const {
  return slice_elements(id) * num_slices(id);
}

std::int64_t Program::model_elements(ShardId id) const {
  const Shard& s = shard(id);
  return s.whole_count > 0 ? s.whole_count : s.count;
}

int Program::slice_tiles(ShardId id) const {
  if (!is_model_state(shard(id).role)) return 1;
  return static_cast<int>(ceil_div(slice_elements(id), tile_elements));
}

int Program::num_tiles(ShardId id) const {
  return slice_tiles(id) * (shard(id).sharing == Sharing::sliced ? 1 : num_slices(id));
}

std::int64_t Program::tile_begin(ShardId id, int tile) const {
  const int tiles = slice_tiles(id);
  return tile / tiles * slice_elements(id) + tile % tiles * tile_elements;
}

std::int64_t Program::tile_count(ShardId id, int tile) const {
  if (!is_model_state(shard(id).role)) return shard(id).count;
  return std::min(tile_elements, slice_elements(id) - tile % slice_tiles(id) * tile_elements);
}

std::int64_t Program::tile_bytes(ShardId id, int tile) const {
  return storage_bytes(shard(id).dtype, tile_count(id, tile));
}

int Program::place(ShardId id, int tile) const {
  return shard(id).sharing == Sharing::sliced ? rank * slice_tiles(id) + tile : tile;
}

int Program::tile_at(ShardId id, int place) const {
  if (shard(id).sharing == Sharing::replicated) return place;
  const int tiles = slice_tiles(id);
  return place / tiles == rank ? place % tiles : -1;
}

bool Program::is_own(ShardId id, int tile) const {
  return num_slices(id) == 1 || place(id, tile) / slice_tiles(id) == rank;
}

// A replicated shard's tiles are numbered as places are.
std::int64_t Program::place_begin(ShardId id, int place) const { return tile_begin(id, place); }

}  // namespace strata
