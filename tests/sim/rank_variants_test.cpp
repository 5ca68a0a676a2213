// Formats of the optimizer's state and schedules, with several ranks: the stage and the order of
// work never change a bit of what a world trains to.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <tuple>
#include <vector>

#include "sim/rank_training.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::of_ranks;
using testing::Outcome;
using testing::place_ranks_randomly;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train_on_ranks;

constexpr std::int64_t horizontal = 1, grouped = 2, vertical = 0;

struct RankStateCase {
  const char* name;
  bool bf16;
  MasterFormat master;
  DType moments;
};
constexpr RankStateCase states[] = {
    {"Fp32", false, MasterFormat::f32, DType::f32},
    {"Split", true, MasterFormat::split, DType::f32},
    {"SplitWithQ8Moments", true, MasterFormat::split, DType::q8},
    {"Bf16Moments", true, MasterFormat::f32, DType::bf16},
};

// Under a sanitizer, the one with most parts.
std::vector<RankStateCase> tested_states() {
  if (testing::sanitized) return {states[2]};
  return {std::begin(states), std::end(states)};
}

struct RankVariant {
  const char* name;
  std::int64_t group;
  const char* update_order;
  double streamed;
  double max_grad_norm = 0.5;
  std::int64_t kept_layers = 0;
};
constexpr RankVariant rank_variants[] = {
    {"Deferred", horizontal, "deferred", 0},
    {"AfterBackwardHalfStreamed", horizontal, "after_backward", 0.5},
    {"VerticalStreamed", vertical, "deferred", 1},
    {"GroupedKeepingLayers", grouped, "after_backward", 0, 0.5, all_layers},
    {"DuringBackward", horizontal, "during_backward", 0, 0},
    {"VerticalDuringBackwardHalfStreamed", vertical, "during_backward", 0.5, 0},
};

// Every stage, and a world that divides nothing.
constexpr std::array<std::pair<int, int>, 5> worlds_and_stages{
    {{2, 0}, {2, 1}, {3, 2}, {2, 3}, {3, 3}}};

RunConfig plain_config(const RankStateCase& state, int world, double max_grad_norm) {
  // Untied: with tied embeddings, groups would change the order of a sum, and are refused.
  RunConfig config = of_ranks(tiny_config(tiny_files()), world, 0);
  config.gradient_accumulation_steps = 4;
  config.max_steps = rounds(5, 3);
  config.eval_steps = 3;
  config.bf16 = state.bf16;
  config.optimizer_master = state.master;
  config.optimizer_moments = state.moments;
  config.max_grad_norm = max_grad_norm;
  config.offload.update_order = "after_backward";
  return config;
}

class RanksVariant : public ::testing::TestWithParam<std::tuple<RankStateCase, RankVariant>> {
 protected:
  static const RankStateCase& state() { return std::get<0>(GetParam()); }
  static const RankVariant& variant() { return std::get<1>(GetParam()); }

  // Nothing sliced, all in host memory, one op after the other.
  static const Outcome& plain(int world) {
    static std::map<std::tuple<std::string, int, double>, Outcome> known;
    const std::tuple key{std::string(state().name), world, variant().max_grad_norm};
    if (!known.contains(key)) {
      const RunConfig config = plain_config(state(), world, variant().max_grad_norm);
      known[key] = train_on_ranks(config, {{ExecutionMode::serial}}).outcome;
    }
    return known[key];
  }
  static RunConfig config(int world, int stage) {
    RunConfig config = plain_config(state(), world, variant().max_grad_norm);
    place_ranks_randomly(config, static_cast<std::uint64_t>(500 + 10 * world + stage));
    config.zero_stage = stage;
    config.offload.accumulation_group = variant().group;
    config.offload.update_order = variant().update_order;
    config.offload.streamed_updates = variant().streamed;
    config.offload.keep_layers = variant().kept_layers;
    return config;
  }
  static void expect_plain_bits(int world, int stage, const ExecutorOptions& executor) {
    const Outcome outcome = train_on_ranks(config(world, stage), {executor}).outcome;
    EXPECT_EQ(difference(plain(world), outcome), "") << "world " << world << " stage " << stage;
  }
};

INSTANTIATE_TEST_SUITE_P(All, RanksVariant,
                         ::testing::Combine(::testing::ValuesIn(tested_states()),
                                            ::testing::ValuesIn(rank_variants)),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param).name) +
                                  std::get<1>(chosen.param).name;
                         });

TEST_P(RanksVariant, GivesThePlainBitsInEachStage) {
  for (const auto& [world, stage] : worlds_and_stages)
    if (!testing::sanitized || world + stage == 5) expect_plain_bits(world, stage, {});
}

TEST_P(RanksVariant, GivesThePlainBitsInAnyLegalOrder) {
  expect_plain_bits(2, 3, {ExecutionMode::seeded, 7, Poison::on});
  if (!testing::sanitized) expect_plain_bits(3, 1, {ExecutionMode::seeded, 8, Poison::on});
}

}  // namespace
}  // namespace strata
