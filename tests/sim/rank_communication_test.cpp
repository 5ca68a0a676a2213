// What ranks exchange is what their plans say, byte for byte.

#include <gtest/gtest.h>

#include "sim/rank_training.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::of_ranks;
using testing::place_ranks_randomly;
using testing::RankFacts;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train_on_ranks;

RunConfig communicating_run() {
  RunConfig config = tiny_config(tiny_files(60));
  config.max_steps = 3;
  config.evaluate = false;
  return config;
}

std::uint64_t planned_bytes(const Plan& plan, std::string_view schedule) {
  std::uint64_t bytes = 0;
  for (const Op& op : plan.schedule(schedule)->ops) bytes += collective_bytes(op);
  return bytes;
}

void expect_planned_exchange(const RunConfig& config, const std::string& what) {
  for (const RankFacts& rank : train_on_ranks(config).ranks) {
    const auto steps = static_cast<std::uint64_t>(rank.training.steps);
    EXPECT_EQ(rank.exchanged_bytes, steps * planned_bytes(rank.plan, "train")) << what;
    EXPECT_GT(rank.exchanged_bytes, 0u) << what;
  }
}

TEST(RanksExchange, ThePlansBytesInEachStepWhateverTheStageAndPlacement) {
  for (const int world : {2, 3, 5})
    for (int stage = rounds(0, 2); stage < 4; ++stage)
      for (int i = 0; i < rounds(3, 1); ++i) {
        const auto seed = static_cast<std::uint64_t>(100 * world + 10 * stage + i);
        RunConfig config = of_ranks(communicating_run(), world, stage);
        place_ranks_randomly(config, seed);
        config.bf16 = i % 2 == 0;
        config.gradient_accumulation_steps = 1 + i;
        expect_planned_exchange(config, "seed " + std::to_string(seed));
      }
}

TEST(RanksExchange, ThePlansBytesWhenUpdatesRunDuringBackward) {
  RunConfig config = of_ranks(communicating_run(), 2, 2);
  config.max_grad_norm = 0;
  config.offload.update_order = "during_backward";
  expect_planned_exchange(config, "during backward");
}

// Rows that the ranks do not share out evenly are filled up: all ranks do as many.
TEST(RanksExchange, ThePlansBytesForEachMicroBatchOfAnEvaluation) {
  RunConfig config = of_ranks(communicating_run(), 3, 3);
  config.evaluate = true;
  config.eval_steps = 0;  // before and after
  const auto rows = static_cast<std::uint64_t>(held_out_batches(config)->micro_batches_per_epoch());
  for (const RankFacts& rank : train_on_ranks(config).ranks)
    EXPECT_EQ(rank.exchanged_bytes, 3 * planned_bytes(rank.plan, "train") +
                                        2 * ((rows + 2) / 3) * planned_bytes(rank.plan, "eval"));
}

TEST(RanksExchange, NothingWhenThereIsOneRank) {
  for (const RankFacts& rank : train_on_ranks(of_ranks(communicating_run(), 1, 3)).ranks) {
    EXPECT_EQ(rank.exchanged_bytes, 0u);
    EXPECT_EQ(planned_bytes(rank.plan, "train"), 0u);
  }
}

}  // namespace
}  // namespace strata
