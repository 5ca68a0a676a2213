#pragma once
// NvmeTiles is what a Plan keeps on NVMe, as a store lists it: one StoreTile per home there, in the
// order of shards and tiles. Homes that share their bytes in turn (activations that are not live
// together) are one tile, named after the first. A value; no thread contract.

#include <cstdint>
#include <vector>

#include "strata/io/store/shard_store.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

class NvmeTiles {
 public:
  NvmeTiles(const Program& program, const Plan& plan);

  const std::vector<StoreTile>& tiles() const { return tiles_; }
  // The index in tiles() of a tile whose home is on NVMe.
  int index(ShardId shard, int tile) const;

 private:
  std::vector<StoreTile> tiles_;
  std::vector<std::vector<int>> indices_;  // [shard][tile]; -1: at home elsewhere
};

}  // namespace strata
