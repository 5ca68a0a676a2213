// Several ranks train to the same bits whatever the ZeRO stage slices and wherever the slices live.

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "sim/rank_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::make_training_files;
using testing::of_ranks;
using testing::Outcome;
using testing::place_ranks_randomly;
using testing::place_state;
using testing::RanksOptions;
using testing::rounds;
using testing::tiny_config;
using testing::train;
using testing::train_on_ranks;
using testing::TrainingFiles;
using testing::unruly_sim_engine;

constexpr int num_stages = 4;

struct NamedModel {
  const char* name;
  const TrainingFiles& (*files)();
};

const TrainingFiles& tied_files() {
  static const TrainingFiles made = [] {
    HfConfig model = random_model_preset("tiny");
    model.tie_word_embeddings = true;
    return make_training_files(model);
  }();
  return made;
}

// Sizes that no number of ranks divides.
const TrainingFiles& odd_rank_files() {
  static const TrainingFiles made = [] {
    HfConfig model = random_model_preset("tiny");
    model.vocab_size = 263;
    model.hidden_size = 51;
    model.intermediate_size = 77;
    model.num_attention_heads = 3;
    model.num_key_value_heads = 1;
    model.head_dim = 14;
    return make_training_files(model);
  }();
  return made;
}

// Under a sanitizer, which looks at each access and not at the bits, few.
std::vector<int> worlds() {
  if (testing::sanitized) return {2, 3};
  return {1, 2, 3, 4, 8};
}

class Ranks : public ::testing::TestWithParam<std::tuple<int, NamedModel>> {
 protected:
  static int world() { return std::get<0>(GetParam()); }

  static RunConfig config(int stage) {
    RunConfig config = of_ranks(tiny_config(std::get<1>(GetParam()).files()), world(), stage);
    config.max_steps = rounds(6, 3);
    config.eval_steps = rounds(3, 2);
    return config;
  }
  // Nothing sliced, everything in host memory, one op after the other.
  static Outcome plain() { return train_on_ranks(config(0), {{ExecutionMode::serial}}).outcome; }

  void expect_plain_bits(const RunConfig& config, const RanksOptions& options,
                         const std::string& what) const {
    EXPECT_EQ(difference(plain_, train_on_ranks(config, options).outcome), "")
        << "stage " << config.zero_stage << ", " << what;
  }
  void expect_plain_bits_in(const TierFractions& tiers, int stage, const std::string& what) const {
    RunConfig placed = config(stage);
    place_state(placed, tiers);
    const auto seed = static_cast<std::uint64_t>(stage + 10 * world());
    expect_plain_bits(placed, {{}, unruly_sim_engine(seed)}, what);
  }
  void expect_plain_bits_placed_randomly(std::uint64_t seed, int stage,
                                         const ExecutorOptions& executor) const {
    RunConfig placed = config(stage);
    place_ranks_randomly(placed, seed);
    expect_plain_bits(placed, {executor}, "placement " + std::to_string(seed));
  }
  // Seeds that no other world, stage or number has.
  static std::uint64_t seed(int stage, int number) {
    return static_cast<std::uint64_t>(1000 * world() + 100 * stage + number);
  }

 private:
  const Outcome plain_ = plain();
};

INSTANTIATE_TEST_SUITE_P(
    Worlds, Ranks,
    ::testing::Combine(::testing::ValuesIn(worlds()),
                       ::testing::Values(NamedModel{"Tied", tied_files},
                                         NamedModel{"OddSizes", odd_rank_files})),
    [](const auto& chosen) {
      return std::to_string(std::get<0>(chosen.param)) + std::get<1>(chosen.param).name;
    });

TEST_P(Ranks, TrainToTheSameBitsInEachStageWithEverythingInOneTier) {
  for (int stage = 0; stage < num_stages; ++stage) {
    expect_plain_bits_in({1, 0, 0}, stage, "all on gpu");
    if (!testing::sanitized) expect_plain_bits_in({0, 1, 0}, stage, "all on cpu");
    expect_plain_bits_in({0, 0, 1}, stage, "all on nvme");
  }
}

TEST_P(Ranks, TrainToTheSameBitsInEachStageSpreadOverAllTiers) {
  for (int stage = 0; stage < num_stages; ++stage) {
    if (!testing::sanitized) expect_plain_bits_in({0.3, 0.3, 0.4}, stage, "spread");
    for (int i = 0; i < rounds(2, 1); ++i)
      expect_plain_bits_placed_randomly(seed(stage, i), stage, {});
  }
}

TEST_P(Ranks, TrainToTheSameBitsInEachStageInAnyLegalOrder) {
  for (int stage = 0; stage < num_stages; ++stage)
    for (int i = 50; i < 50 + rounds(2, 1); ++i) {
      const auto order = static_cast<std::uint64_t>(i);
      expect_plain_bits_placed_randomly(seed(stage, i), stage,
                                        {ExecutionMode::seeded, order, Poison::on});
    }
}

// What the other tests compare with is a run that learns and clips.
TEST(RanksTraining, LowersTheLossAndClips) {
  RunConfig config = of_ranks(tiny_config(odd_rank_files()), 3, 3);
  const Outcome outcome = train_on_ranks(config).outcome;
  ASSERT_EQ(outcome.losses.size(), 20u);
  ASSERT_GE(outcome.held_out.size(), 3u);
  EXPECT_LT(outcome.held_out.back(), outcome.held_out.front() - 0.1);
  for (const double norm : outcome.norms) EXPECT_GT(norm, config.max_grad_norm);
}

TEST(RanksTraining, OfOneRankHasTheBitsOfARunThatKnowsNoRanks) {
  RunConfig config = tiny_config(odd_rank_files());
  config.max_steps = 6;
  EXPECT_EQ(difference(train(config), train_on_ranks(of_ranks(config, 1, 3)).outcome), "");
}

TEST(RanksTraining, DependsOnTheWorldSizeSinceMoreTokensAreSeen) {
  RunConfig config = tiny_config(odd_rank_files());
  config.max_steps = 3;
  const Outcome two = train_on_ranks(of_ranks(config, 2, 3)).outcome;
  EXPECT_EQ(difference(two, train_on_ranks(of_ranks(config, 3, 3)).outcome),
            " losses norms held-out losses weights");
}

}  // namespace
}  // namespace strata
