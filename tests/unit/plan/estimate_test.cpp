#include "src/plan/estimate.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/machines.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::random_policy;
using testing::random_saving;
using testing::random_versioned;
using testing::roomy_limits;
using testing::ToyShape;
using testing::with_split_masters;
using testing::worked_toy;

struct Ranks {
  int world, zero_stage;
};

// Every other toy has as many tiles for each rank as one rank has.
ToyShape random_shape(std::uint64_t seed, Ranks ranks) {
  const int size = seed % 2 == 0 ? ranks.world : 1;
  return {.layers = 1 + static_cast<int>(seed % 7),
          .micro_batches = 1 + static_cast<int>(seed % 3),
          .group = seed % 4 < 2 ? 1 : 1 + static_cast<int>(seed % 3),
          .layer_elements = size * (40000 + 9000 * static_cast<std::int64_t>(seed % 5)),
          .embedding_elements = size * 30000,
          .tied = seed % 4 == 0,
          .world = ranks.world,
          .rank = static_cast<int>(seed / 2) % ranks.world,
          .zero_stage = ranks.zero_stage};
}

Policy policy_of(std::uint64_t seed) {
  Policy policy = random_policy(seed);
  policy.streamed_updates = static_cast<double>(seed % 3) / 2;
  policy.update_order = static_cast<UpdateOrder>(seed / 3 % 3);
  return policy;
}

MachineProfile machine_of(std::uint64_t seed, Ranks ranks) {
  MachineProfile machine = testing::slow_machine(seed);
  machine.ranks = ranks.world;
  return machine;
}

class EstimateOfRanks : public ::testing::TestWithParam<Ranks> {};

TEST_P(EstimateOfRanks, IsWithinFivePercentOfThePlansMemoryOnEveryTier) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const Program program = make_toy_program(random_shape(seed, GetParam()));
    const Policy policy = policy_of(seed);
    const Plan plan = make_plan(program, roomy_limits(), policy);
    const Estimator estimator(program, machine_of(seed, GetParam()), 2);
    const Estimate estimate = estimator.estimate(policy);
    for (std::size_t tier = 0; tier < num_tiers; ++tier) {
      const auto bytes = static_cast<double>(plan.tier_bytes[tier]);
      EXPECT_NEAR(estimate.tier_bytes[tier], bytes, 0.05 * bytes)
          << "seed " << seed << " " << tier_name(static_cast<Tier>(tier));
    }
  }
}

// The memory of checkpoints is known to the byte.
TEST_P(EstimateOfRanks, KnowsWhatSavesAndCommitsAdd) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Program toy = make_toy_program(random_shape(seed, GetParam()));
    const bool is_split = seed % 3 == 1;
    const Program program = is_split ? with_split_masters(toy) : toy;
    Policy with = is_split ? random_saving(seed) : random_versioned(seed);
    Policy without = with;
    without.background_saves = without.versioned_state = false;
    const Estimator estimator(program, testing::slow_machine(seed), 2);
    const auto added = [&](std::size_t tier) {
      return estimator.estimate(with).tier_bytes[tier] -
             estimator.estimate(without).tier_bytes[tier];
    };
    const Plan plan = make_plan(program, roomy_limits(), with);
    const Plan plain = make_plan(program, roomy_limits(), without);
    for (std::size_t tier = 0; tier < num_tiers; ++tier)
      EXPECT_EQ(added(tier), static_cast<double>(plan.tier_bytes[tier] - plain.tier_bytes[tier]))
          << "seed " << seed << " " << tier_name(static_cast<Tier>(tier));
  }
}

// Ranks then hold slices of a part of a tile, or of none.
TEST(Estimate, IsMadeOfModelsThatHaveFewerTilesThanThereAreRanks) {
  for (const int stage : {0, 1, 2, 3}) {
    const Program program =
        make_toy_program({.layers = 1, .layer_elements = 100, .world = 8, .zero_stage = stage});
    const Estimate estimate = Estimator(program, testing::slow_machine(1), 2).estimate(Policy{});
    EXPECT_GT(estimate.seconds, 0) << "stage " << stage;
    EXPECT_GT(estimate.tier_bytes[1], 0) << "stage " << stage;
  }
}

double simulated_seconds(const Program& program, const Policy& policy,
                         const MachineProfile& machine) {
  const Plan plan = make_plan(program, roomy_limits(), policy);
  return simulate(program, plan, "train", machine).step_seconds;
}

// Above what is simulated by no more than host slots save of a toy: they keep weights on their way.
TEST_P(EstimateOfRanks, BoundsTheSimulatedStep) {
  double closest = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Program program = worked_toy(random_shape(seed, GetParam()), seed % 3 == 0 ? 1e6 : 1e9);
    const MachineProfile machine = machine_of(seed, GetParam());
    const Policy policy = policy_of(seed);
    const double seconds = simulated_seconds(program, policy, machine);
    const Estimate estimate = Estimator(program, machine, 2).estimate(policy);
    EXPECT_LE(estimate.least_seconds, seconds * 1.02) << "seed " << seed;
    EXPECT_LE(estimate.seconds, seconds * 1.05) << "seed " << seed;
    closest = std::max(closest, estimate.least_seconds / seconds);
  }
  EXPECT_GT(closest, 0.9);
}

INSTANTIATE_TEST_SUITE_P(Worlds, EstimateOfRanks,
                         ::testing::Values(Ranks{1, 3}, Ranks{2, 0}, Ranks{2, 1}, Ranks{2, 2},
                                           Ranks{2, 3}, Ranks{8, 0}, Ranks{8, 1}, Ranks{8, 2},
                                           Ranks{8, 3}),
                         [](const auto& test) {
                           return fmt::format("World{}Stage{}", test.param.world,
                                              test.param.zero_stage);
                         });

}  // namespace
}  // namespace strata
