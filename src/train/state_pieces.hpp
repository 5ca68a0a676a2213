#pragma once
// A run's state as checkpoints hold it: vectors by role and block, whole and without padding, and
// which part of each vector lies in which tile of a rank. Masters are f32 there, also those a run
// splits; working weights are left out, for they are masters rounded. Pure but for the conversions'
// targets; any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// What the optimizer keeps, in the order that checkpoints hold it.
constexpr Role optimizer_roles[] = {Role::master, Role::moment1, Role::moment2};

// Of masters and moments, block by block.
std::vector<StateVector> state_vectors(const PlannedRun& run);
// Masters are kept as the half that their weights lack.
bool has_split_master(const Program& program);
// The shard of a role of a block that is known by its name.
ShardId state_shard(const Program& program, Role role, const std::string& block);

// A place of a block's vector (program.hpp) as far as it holds elements of the model.
struct StateSpan {
  int place = 0;
  std::int64_t first = 0, count = 0;
};
std::vector<StateSpan> state_spans(const Program& program, ShardId shard);

// A moment's tile and a vector's elements: of q8, regions of one tile and of norm chunks.
void moment_to_vector(DType dtype, std::int64_t tile_count, std::span<const std::byte> tile,
                      std::int64_t count, std::span<std::byte> elements);
// Zeroes what lies behind the elements.
void moment_from_vector(DType dtype, std::int64_t count, std::span<const std::byte> elements,
                        std::int64_t tile_count, std::span<std::byte> tile);

}  // namespace strata
