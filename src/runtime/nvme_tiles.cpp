#include "strata/runtime/nvme_tiles.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr int elsewhere = -1;

std::string tile_name(const Shard& shard, std::size_t tile) {
  return fmt::format("{} tile {}", shard.name, tile);
}

}  // namespace

NvmeTiles::NvmeTiles(const Program& program, const Plan& plan) : indices_(plan.homes.size()) {
  std::map<std::pair<std::uint8_t, std::uint64_t>, int> known;  // by drive and offset
  for (const Shard& shard : program.shards) {
    const auto& homes = plan.homes[shard.id.index()];
    for (std::size_t tile = 0; tile < homes.size(); ++tile) {
      const Region& home = homes[tile];
      int index = elsewhere;
      if (home.tier == Tier::nvme) {
        const auto next = static_cast<int>(tiles_.size());
        index = known.try_emplace({home.drive, home.offset}, next).first->second;
        if (index == next) tiles_.push_back({tile_name(shard, tile), home.bytes, home.drive});
        ensure(tiles_[static_cast<std::size_t>(index)].bytes == home.bytes);
      }
      indices_[shard.id.index()].push_back(index);
    }
  }
}

int NvmeTiles::index(ShardId shard, int tile) const {
  const int index = indices_.at(shard.index()).at(static_cast<std::size_t>(tile));
  ensure(index != elsewhere);
  return index;
}

}  // namespace strata
