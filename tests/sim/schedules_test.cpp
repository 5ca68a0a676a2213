// The schedule never changes a bit: a real model trained with micro-batches in groups, updates in
// every order and on either engine, in every tier, against the plain schedule: one micro-batch
// after the other, all updates between two steps.

#include <gtest/gtest.h>

#include <map>

#include "sim/placement_checks.hpp"
#include "sim/tiny_training.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::make_training_files;
using testing::Outcome;
using testing::PlacementChecks;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train;

constexpr int micro_batches = 4;
constexpr std::int64_t horizontal_order = 1, grouped_order = 2, vertical_order = 0;

struct ScheduleState {
  const char* name;
  bool bf16;
  MasterFormat master;
  DType moments;
};

struct ScheduledVariant {
  const char* name;
  std::int64_t group;
  const char* update_order;
  double streamed;
  double max_grad_norm = 0.5;
};

constexpr ScheduledVariant scheduled_variants[] = {
    {"Vertical", vertical_order, "after_backward", 0},
    {"Grouped", grouped_order, "after_backward", 0},
    {"Deferred", horizontal_order, "deferred", 0},
    {"AfterBackward", horizontal_order, "after_backward", 0},
    {"HalfStreamed", horizontal_order, "deferred", 0.5},
    {"Streamed", horizontal_order, "after_backward", 1},
    {"VerticalDeferredHalfStreamed", vertical_order, "deferred", 0.5},
    {"DuringBackward", horizontal_order, "during_backward", 0, 0},
    {"VerticalDuringBackwardStreamed", vertical_order, "during_backward", 1, 0},
};

RunConfig plain_config(const ScheduleState& state, double max_grad_norm) {
  // Untied: with tied embeddings, groups would change the order of a sum, and are refused.
  RunConfig config = tiny_config(tiny_files());
  config.gradient_accumulation_steps = micro_batches;
  config.max_steps = rounds(8, 4);
  config.eval_steps = 3;
  config.bf16 = state.bf16;
  config.optimizer_master = state.master;
  config.optimizer_moments = state.moments;
  config.max_grad_norm = max_grad_norm;
  config.offload.update_order = "after_backward";
  return config;
}

class ScheduleVariant
    : public ::testing::TestWithParam<std::tuple<ScheduleState, ScheduledVariant>> {
 protected:
  static const ScheduleState& state() { return std::get<0>(GetParam()); }
  static const ScheduledVariant& variant() { return std::get<1>(GetParam()); }

  // All in host memory, one op after the other.
  static const Outcome& plain() {
    static std::map<std::pair<std::string, double>, Outcome> known;
    const std::pair key{std::string(state().name), variant().max_grad_norm};
    if (!known.contains(key))
      known[key] = train(plain_config(state(), key.second), {ExecutionMode::serial});
    return known[key];
  }
  static RunConfig config() {
    RunConfig config = plain_config(state(), variant().max_grad_norm);
    config.offload.accumulation_group = variant().group;
    config.offload.update_order = variant().update_order;
    config.offload.streamed_updates = variant().streamed;
    return config;
  }
  static PlacementChecks checks() { return {config(), plain()}; }
};

INSTANTIATE_TEST_SUITE_P(
    All, ScheduleVariant,
    ::testing::Combine(::testing::Values(ScheduleState{"Bf16", true, MasterFormat::f32, DType::f32},
                                         ScheduleState{"Fp32", false, MasterFormat::f32,
                                                       DType::f32},
                                         ScheduleState{"SplitWithQ8Moments", true,
                                                       MasterFormat::split, DType::q8}),
                       ::testing::ValuesIn(scheduled_variants)),
    [](const auto& chosen) {
      return std::string(std::get<0>(chosen.param).name) + std::get<1>(chosen.param).name;
    });

TEST_P(ScheduleVariant, GivesThePlainBitsInEachTier) {
  for (const TierFractions tier :
       {TierFractions{1, 0, 0}, TierFractions{0, 1, 0}, TierFractions{0, 0, 1}})
    checks().expect_plain_bits(
        checks().all_in(tier), {},
        "gpu " + std::to_string(tier.device) + ", cpu " + std::to_string(tier.host));
}

TEST_P(ScheduleVariant, GivesThePlainBitsOverAllTiersOnThreads) {
  checks().on_threads(300, rounds(2, 1));
}

TEST_P(ScheduleVariant, GivesThePlainBitsOverAllTiersInAnyLegalOrder) {
  checks().in_legal_orders(400, rounds(2, 1));
}

TEST(Schedules, TrainAtAllAndClip) {
  const Outcome plain = train(plain_config({"", true, MasterFormat::f32, DType::f32}, 0.5));
  EXPECT_LT(plain.losses.back(), plain.losses.front());
  for (const double norm : plain.norms) EXPECT_GT(norm, 0.5) << "clipping is at work";
}

TEST(Schedules, OfGroupsAreRefusedWithTiedEmbeddings) {
  HfConfig model = random_model_preset("tiny");
  model.tie_word_embeddings = true;
  RunConfig config = tiny_config(make_training_files(model, 20));
  config.offload.accumulation_group = vertical_order;
  EXPECT_THROW(testing::plan_here(config), ConfigError);
  config.offload.accumulation_group = horizontal_order;
  EXPECT_NO_THROW(testing::plan_here(config));
}

}  // namespace
}  // namespace strata
