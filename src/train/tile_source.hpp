#pragma once
// A TileSource reads elements of named parameters from the tiles of all ranks. It keeps of each
// block's weight and master the tile read last, so both halves of a split master. Thread contract:
// one thread, of the first rank.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "strata/train/planned_run.hpp"
#include "train/tile_exchange.hpp"

namespace strata {

class TileSource {
 public:
  TileSource(const PlannedRun& run, TileExchange& tiles);

  // Elements of parameter `name` from `first` on. Those in fp32 are the master's, if there is one.
  void read(const std::string& name, std::int64_t first, DType dtype, std::span<std::byte> target);

  // Of host memory for the tiles it keeps, at most.
  static std::uint64_t buffer_bytes(const Program& program);

 private:
  struct Location {
    ShardId weight, master;
    std::int64_t offset;  // in the block's vector
  };
  struct HeldTile {
    ShardId shard;
    int place = -1;
    std::vector<std::byte> bytes;
  };

  template <typename Visit>
  void for_each_part(ShardId shard, std::int64_t begin, HeldTile& held, Visit visit);
  void hold(ShardId shard, int place, HeldTile& held);

  const Program& program_;
  TileExchange& tiles_;
  std::map<std::string, Location> locations_;
  std::vector<float> values_;
  HeldTile main_, low_bits_;  // what values come from, and what completes them
};

}  // namespace strata
