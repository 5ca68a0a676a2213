// What a rank holds falls as the number of ranks grows, role by role as the stage says: planned as
// a formula has it, and measured.

#include "sim/rank_memory.hpp"

#include <gtest/gtest.h>

#include "strata/checkpoint/random_model.hpp"
#include "strata/core/bytes.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::formula_bytes;
using testing::fresh_folder;
using testing::make_training_files;
using testing::measure_ranks;
using testing::MeasuredRanks;
using testing::MeasuredState;
using testing::of_ranks;
using testing::place_ranks_randomly;
using testing::place_state;
using testing::plan_of_rank;
using testing::planned_bytes;
using testing::slicing_stage;
using testing::state_part_name;
using testing::state_parts;
using testing::StateBytes;
using testing::StatePart;
using testing::tiny_config;
using testing::TrainingFiles;

// Blocks of half a million elements: padding is little, as it is in real models.
const TrainingFiles& memory_files() {
  static const TrainingFiles made = [] {
    HfConfig model = random_model_preset("tiny");
    model.vocab_size = 2048;
    model.hidden_size = 256;
    model.intermediate_size = 704;
    model.num_attention_heads = 4;
    model.num_key_value_heads = 2;
    model.head_dim = 64;
    return make_training_files(model, 40, DType::bf16);
  }();
  return made;
}

const TrainingFiles& odd_memory_files() {
  static const TrainingFiles made = [] {
    HfConfig model = random_model_preset("tiny");
    model.vocab_size = 263;
    model.hidden_size = 51;
    model.tie_word_embeddings = true;
    return make_training_files(model, 40);
  }();
  return made;
}

RunConfig short_memory_run(const TrainingFiles& of) {
  RunConfig config = tiny_config(of);
  config.max_steps = 2;
  config.evaluate = false;
  config.offload.tile_bytes = 256 * KiB;
  config.offload.io_engine = "threads";  // io_uring pins its buffers: all would count as touched
  return config;
}

std::string text_of(const StateBytes& bytes) {
  std::string text;
  for (const StatePart part : state_parts)
    text += std::string(state_part_name(part)) + " " + std::to_string(bytes[part]) + " ";
  return text;
}

void expect_planned_as_the_formula(RunConfig config, int rank) {
  config.offload.nvme_paths = {::testing::TempDir()};
  const PlannedRun run = plan_of_rank(config, rank);
  EXPECT_EQ(text_of(planned_bytes(run.plan)), text_of(formula_bytes(run)))
      << "world " << config.world << " stage " << config.zero_stage;
}

TEST(RankMemory, IsPlannedAsTheFormulaSaysForEachStageWorldAndPlacement) {
  for (const TrainingFiles* of : {&memory_files(), &odd_memory_files()})
    for (const int world : {1, 2, 3, 5, 8})
      for (int stage = 0; stage < 4; ++stage) {
        if (testing::sanitized && world % 3 != stage) continue;
        RunConfig config = of_ranks(short_memory_run(*of), world, stage);
        expect_planned_as_the_formula(config, world - 1);
        place_ranks_randomly(config, static_cast<std::uint64_t>(10 * world + stage));
        config.bf16 = stage % 2 == 0;
        expect_planned_as_the_formula(config, 0);
      }
}

TEST(RankMemory, FallsAsTheRanksGrowInNumberWhereTheStageSlices) {
  const StateBytes one =
      planned_bytes(plan_of_rank(of_ranks(short_memory_run(memory_files()), 1, 3), 0).plan);
  for (const int world : {2, 4, 8})
    for (int stage = 0; stage < 4; ++stage) {
      const RunConfig config = of_ranks(short_memory_run(memory_files()), world, stage);
      const StateBytes bytes = planned_bytes(plan_of_rank(config, 0).plan);
      for (const StatePart part : state_parts) {
        const double sharers = stage >= slicing_stage(part) ? world : 1;
        EXPECT_NEAR(static_cast<double>(bytes[part]), static_cast<double>(one[part]) / sharers,
                    0.05 * static_cast<double>(one[part]) / sharers)
            << state_part_name(part) << " of world " << world << " in stage " << stage;
      }
    }
}

// Whole pages are touched: what lies at a home's edges may be its neighbour's.
void expect_touched(const MeasuredState& state, const std::string& what) {
  for (const StatePart part : state_parts) {
    EXPECT_GT(state.homes[part], 0u) << what;
    EXPECT_GE(static_cast<double>(state.touched[part]),
              0.97 * static_cast<double>(state.homes[part]))
        << state_part_name(part) << ", " << what;
  }
}

void expect_tiers_within_plan(const MeasuredRanks& measured, const std::string& what) {
  for (const TierPeak& peak : measured.outcome.ranks.front().peaks) {
    EXPECT_GT(peak.planned_bytes, 0u) << peak.tier << ", " << what;
    if (peak.tier == "nvme") continue;  // and its store's own files
    EXPECT_LE(peak.measured_bytes, peak.planned_bytes) << peak.tier << ", " << what;
    EXPECT_GE(static_cast<double>(peak.measured_bytes),
              0.9 * static_cast<double>(peak.planned_bytes))
        << peak.tier << ", " << what;
  }
}

TEST(RankMemory, IsTouchedAsPlannedInEachTierRoleByRole) {
  for (const int world : {2, 4})
    for (int stage = 0; stage < 4; ++stage) {
      if (testing::sanitized && (world > 2 || stage == 1)) continue;
      RunConfig config = of_ranks(short_memory_run(memory_files()), world, stage);
      place_state(config, {0.3, 0.4, 0.3});
      const std::string what = "world " + std::to_string(world) + " stage " + std::to_string(stage);
      const MeasuredRanks measured = measure_ranks(config);
      for (const MeasuredState& state : measured.states) expect_touched(state, what);
      expect_tiers_within_plan(measured, what);
    }
}

// All in host memory, so that what is touched is all there is of the role.
TEST(RankMemory, TouchedByARankIsAnNthOfWhatOneRankTouchesInTheLastStage) {
  const auto touched = [](int world) {
    return measure_ranks(of_ranks(short_memory_run(memory_files()), world, 3))
        .states.back()
        .touched;
  };
  const StateBytes one = touched(1), four = touched(4);
  for (const StatePart part : state_parts)
    EXPECT_NEAR(static_cast<double>(four[part]), static_cast<double>(one[part]) / 4,
                0.05 * static_cast<double>(one[part]) / 4)
        << state_part_name(part);
}

}  // namespace
}  // namespace strata
