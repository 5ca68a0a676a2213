#include "strata/runtime/nvme_tiles.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "strata/core/bytes.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::random_policy;
using testing::roomy_limits;

Plan plan_with(const Program& program, const Policy& policy, std::vector<double> weights = {1, 1}) {
  TierLimits limits = roomy_limits(static_cast<int>(weights.size()));
  limits.drive_weights = std::move(weights);
  return make_plan(program, limits, policy);
}

std::vector<std::uint64_t> bytes_per_drive(const NvmeTiles& nvme, const Plan& plan) {
  std::vector<std::uint64_t> bytes(plan.drive_bytes.size(), 0);
  for (const StoreTile& tile : nvme.tiles())
    bytes[static_cast<std::size_t>(tile.drive)] += align_up(tile.bytes, plan.limits.io_alignment);
  return bytes;
}

TEST(NvmeTiles, AreTheHomesOnNvmeAndNothingElse) {
  const Program program = make_toy_program({.micro_batches = 2});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Plan plan = plan_with(program, random_policy(seed));
    const NvmeTiles nvme(program, plan);
    for (const Shard& shard : program.shards) {
      const auto& homes = plan.homes[shard.id.index()];
      for (int tile = 0; tile < std::ssize(homes); ++tile) {
        const Region& home = homes[static_cast<std::size_t>(tile)];
        if (home.tier != Tier::nvme) continue;
        const auto at = static_cast<std::size_t>(nvme.index(shard.id, tile));
        EXPECT_EQ(nvme.tiles()[at].bytes, home.bytes);
        EXPECT_EQ(nvme.tiles()[at].drive, home.drive);
      }
    }
    EXPECT_EQ(bytes_per_drive(nvme, plan), plan.drive_bytes) << "placement " << seed;
  }
}

TEST(NvmeTiles, HaveUniqueNamesOfRoleBlockAndTile) {
  const Program program = make_toy_program({.micro_batches = 3});
  const NvmeTiles nvme(program, plan_with(program, testing::all_on(Tier::nvme)));
  std::set<std::string> names;
  for (const StoreTile& tile : nvme.tiles()) names.insert(tile.name);
  EXPECT_EQ(names.size(), nvme.tiles().size());
  EXPECT_TRUE(names.contains("moment1/2 tile 1"));
  EXPECT_EQ(nvme.tiles().front().name, "weight/0 tile 0");
}

TEST(NvmeTiles, ShareTheTileOfActivationsThatAreNotLiveTogether) {
  const Program program = make_toy_program({.layers = 3, .micro_batches = 4});
  const Plan plan = plan_with(program, testing::all_on(Tier::nvme));
  const NvmeTiles nvme(program, plan);
  std::set<int> tiles;
  std::set<std::pair<int, std::uint64_t>> places;
  std::size_t homes = 0;
  for (const Shard& shard : program.shards) {
    if (shard.role != Role::activation || plan.homes[shard.id.index()].empty()) continue;
    const Region& home = plan.homes[shard.id.index()].front();
    ++homes;
    places.insert({home.drive, home.offset});
    tiles.insert(nvme.index(shard.id, 0));
  }
  EXPECT_EQ(tiles.size(), places.size());
  EXPECT_LT(tiles.size(), homes);
}

TEST(NvmeTiles, FollowTheWeightsOfTheDrivesToOneTile) {
  const Program program = make_toy_program({.layers = 30});
  const auto tile = static_cast<double>(program.tile_elements * 4);
  for (const std::vector<double>& weights :
       std::vector<std::vector<double>>{{1, 2, 3}, {3, 1}, {0.5, 7, 7, 2}, {6.9, 3.5, 3.5}}) {
    const Plan plan = plan_with(program, testing::all_on(Tier::nvme), weights);
    const double total = static_cast<double>(plan.tier_bytes[2]);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t drive = 0; drive < weights.size(); ++drive)
      EXPECT_NEAR(static_cast<double>(plan.drive_bytes[drive]), total * weights[drive] / sum, tile)
          << "drive " << drive << " of " << weights.size();
  }
}

}  // namespace
}  // namespace strata
