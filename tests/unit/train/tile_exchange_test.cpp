#include "src/train/tile_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "src/train/heartbeat.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/train/ranks.hpp"
#include "unit/train/rank_state.hpp"

namespace strata {
namespace {

using testing::make_training_files;
using testing::RankState;
using testing::tiny_config;

std::byte mark_of(ShardId shard, int place) { return std::byte(shard.value * 37 + place * 5 + 1); }

// Every tile of weights holds its mark.
void mark_weights(RankState& rank) {
  const Program& program = rank.program();
  for (const Shard& shard : program.shards)
    if (shard.role == Role::weight)
      for (int tile = 0; tile < program.num_tiles(shard.id); ++tile)
        rank.state().write(shard.id, tile, [&](std::span<std::byte> bytes) {
          std::ranges::fill(bytes, mark_of(shard.id, program.place(shard.id, tile)));
        });
}

void expect_all_marks(const Program& program, TileExchange& tiles) {
  for (const Shard& shard : program.shards) {
    if (shard.role != Role::weight) continue;
    const int places = program.num_slices(shard.id) * program.slice_tiles(shard.id);
    for (int place = 0; place < places; ++place) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(
          storage_bytes(shard.dtype, program.tile_count(shard.id, place))));
      tiles.fetch(shard.id, place, bytes);
      EXPECT_TRUE(std::ranges::all_of(
          bytes, [&](std::byte byte) { return byte == mark_of(shard.id, place); }));
    }
  }
}

TEST(TileExchange, GivesTheRightTilesHoweverOftenTheOthersAreToldToWait) {
  RunConfig config = tiny_config(make_training_files(random_model_preset("tiny"), 20));
  config.ranks = 3;
  config.world = 3;
  config.offload.tile_bytes = 16 << 10;
  config.offload.nvme_paths = {"/nvme"};
  std::vector<RankLinks> links = make_local_ranks(3);
  run_ranks(links, [&](RankLinks& own) {
    RankState rank(config, own.control->rank());
    mark_weights(rank);
    TileExchange tiles(rank.program(), rank.state(), own.control.get());
    if (own.control->rank() > 0) return tiles.serve();
    {
      const Heartbeat heartbeat(std::chrono::milliseconds(0), [&] { tiles.keep_waiting(); });
      expect_all_marks(rank.program(), tiles);
    }
    tiles.keep_waiting();
    tiles.finish();
  });
}

}  // namespace
}  // namespace strata
