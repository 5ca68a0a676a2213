// Schedules are walked to the bits of the plain one: groups of micro-batches, orders of updates and
// their engines, over random placements, in every mode of the executor.

#include <gtest/gtest.h>

#include "strata/core/error.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_program.hpp"
#include "support/toy_run.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::random_policy;
using testing::random_schedule;
using testing::roomy_limits;
using testing::rounds;
using testing::run_plainly;
using testing::run_planned;
using testing::ToyRunOptions;
using testing::ToyUpdate;
using testing::Trajectory;

constexpr int micro_batches = 4;

Program program_of(int group, ToyUpdate update = ToyUpdate::produces_weight, int kept_layers = 0) {
  return make_toy_program({.layers = 2,
                           .micro_batches = micro_batches,
                           .group = group,
                           .kept_layers = kept_layers,
                           .layer_elements = 5000,
                           .embedding_elements = 9000,
                           .tokens = 32,
                           .tied = false,
                           .update = update});
}

Trajectory run(const Program& program, const Policy& policy, const ToyRunOptions& options,
               std::uint64_t seed) {
  const Plan plan = make_plan(program, roomy_limits(), policy);
  const std::vector<Violation> violations = verify(program, plan);
  EXPECT_TRUE(violations.empty()) << violations.front().what;
  SimOptions disk;
  disk.seed = seed;
  disk.latency_us_max = 10;
  disk.short_transfer_probability = 0.05;
  auto engine = make_sim_engine(disk);
  return run_planned(program, plan, engine.get(), options);
}

// Clipping where the order of updates allows it.
ToyRunOptions scheduled_options(const Policy& policy) {
  ToyRunOptions options{.steps = 3, .evaluate_every = 2};
  if (policy.update_order == UpdateOrder::during_backward) options.max_grad_norm = 0;
  return options;
}

class Schedules : public ::testing::TestWithParam<ExecutionMode> {
 protected:
  // What `policies` give for the program is what the horizontal one gives on plain vectors.
  template <typename MakePolicy>
  void expect_plain_bits(int group, ToyUpdate update, int count, MakePolicy make_policy,
                         int kept_layers = 0) {
    const Program plain = program_of(1, update), program = program_of(group, update, kept_layers);
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(count); ++seed) {
      const Policy policy = make_policy(seed);
      ToyRunOptions options = scheduled_options(policy);
      const Trajectory expected = run_plainly(plain, options);
      options.executor = {GetParam(), seed, Poison::on};
      EXPECT_TRUE(run(program, policy, options, seed) == expected)
          << "group " << group << ", kept " << kept_layers << ", seed " << seed;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, Schedules, testing::all_modes(), testing::mode_name);

TEST_P(Schedules, GiveThePlainBitsInGroupsOfMicroBatches) {
  for (const int group : {2, micro_batches})
    expect_plain_bits(group, ToyUpdate::produces_weight, rounds(8, 3), random_schedule);
}

TEST_P(Schedules, GiveThePlainBitsWithUpdatesBeforeTheNextStep) {
  expect_plain_bits(1, ToyUpdate::produces_weight, rounds(8, 3), [](std::uint64_t seed) {
    Policy policy = random_policy(seed);
    policy.update_order = UpdateOrder::after_backward;
    return policy;
  });
}

TEST_P(Schedules, GiveThePlainBitsWithUpdatesThatPassThroughTheDevice) {
  for (const ToyUpdate update : {ToyUpdate::produces_weight, ToyUpdate::updates_weight})
    expect_plain_bits(1, update, rounds(6, 2), [](std::uint64_t seed) {
      Policy policy = random_schedule(seed);
      policy.streamed_updates = seed % 2 == 0 ? 1 : 0.5;
      return policy;
    });
}

TEST_P(Schedules, GiveThePlainBitsWithLayersThatKeepTheirInsides) {
  for (const int group : {1, micro_batches})
    for (const int kept : {1, 2})
      expect_plain_bits(group, ToyUpdate::produces_weight, rounds(2, 1), random_schedule, kept);
}

}  // namespace
}  // namespace strata
