// Plans of several ranks, run: every stage, placement and mode gives the losses, norms and weights
// of one plain rank that does the work of all, to the bit, and exchanges the bytes that it says.

#include <gtest/gtest.h>

#include <tuple>

#include "strata/core/philox.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_ranks.hpp"
#include "unit/runtime/toy_checks.hpp"

namespace strata {
namespace {

using testing::all_on;
using testing::expect_same;
using testing::random_policy;
using testing::random_schedule;
using testing::RanksRun;
using testing::rounds;
using testing::sim_disk;
using testing::ToyRanks;
using testing::ToyRunOptions;
using testing::ToyShape;
using testing::ToyUpdate;
using testing::Trajectory;
using testing::uneven_shape;

ExecutionMode mode_of(std::uint64_t seed) { return static_cast<ExecutionMode>(seed % 3); }

Trajectory trained(const ToyRanks& ranks, const ToyRunOptions& options, std::uint64_t seed) {
  const auto engine = sim_disk(seed);
  return ranks.together(ranks.train(engine.get(), options));
}

class Ranks : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Worlds, Ranks, ::testing::Values(1, 2, 3, 4, 8),
                         [](const auto& world) { return "World" + std::to_string(world.param); });

TEST_P(Ranks, GiveThePlainBitsInEveryStagePlacementAndMode) {
  ToyRunOptions options{.steps = 3, .evaluate_every = 2};
  const Trajectory expected =
      ToyRanks(uneven_shape(GetParam(), 0), all_on(Tier::host)).plainly(options);
  std::vector<Policy> policies{random_policy(3),   all_on(Tier::nvme), all_on(Tier::device),
                               all_on(Tier::host), random_policy(4),   random_policy(5)};
  policies.resize(static_cast<std::size_t>(rounds(6, 2)));
  std::uint64_t seed = 0;
  for (int stage = 0; stage < 4; ++stage)
    for (std::size_t placement = 0; placement < policies.size(); ++placement, ++seed) {
      const ToyRanks ranks(uneven_shape(GetParam(), stage), policies[placement]);
      options.executor = {mode_of(seed + seed / 3), seed, Poison::on};
      expect_same(expected, trained(ranks, options, seed),
                  "stage " + std::to_string(stage) + ", placement " + std::to_string(placement));
    }
}

TEST_P(Ranks, GiveThePlainBitsInManyLegalOrders) {
  ToyRunOptions options{.steps = 3, .evaluate_every = 2};
  for (const int stage : {1, 3}) {
    const ToyRanks ranks(uneven_shape(GetParam(), stage), random_policy(7));
    const Trajectory expected = ranks.plainly(options);
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(3, 1)); ++seed) {
      options.executor = {ExecutionMode::seeded, seed, seed % 2 == 0 ? Poison::on : Poison::off};
      expect_same(expected, trained(ranks, options, seed), "order " + std::to_string(seed));
    }
  }
}

// Rounded once per sum over the ranks: there the plain run's bits are others.
TEST_P(Ranks, GiveTheSameBitsInEveryStageWithContributionsInBf16) {
  const auto of_stage = [](int stage) {
    ToyShape shape = uneven_shape(GetParam(), stage);
    shape.contribution_dtype = DType::bf16;
    ToyRunOptions options{.steps = 3, .evaluate_every = 2};
    const auto seed = static_cast<std::uint64_t>(stage);
    options.executor = {mode_of(seed), seed, Poison::on};
    return trained(ToyRanks(shape, random_policy(seed)), options, seed);
  };
  const Trajectory expected = of_stage(0);
  for (int stage = 1; stage < 4; ++stage)
    expect_same(expected, of_stage(stage), "stage " + std::to_string(stage));
}

// Bytes that one run of the schedule exchanges.
std::uint64_t planned_bytes(const Plan& plan, std::string_view schedule) {
  std::uint64_t bytes = 0;
  for (const Op& op : plan.schedule(schedule)->ops) bytes += collective_bytes(op);
  return bytes;
}

TEST_P(Ranks, ExchangeTheBytesOfThePlan) {
  for (int stage = 0; stage < 4; ++stage) {
    const ToyRanks ranks(uneven_shape(GetParam(), stage), random_policy(1));
    const auto engine = sim_disk(1);
    const RanksRun run = ranks.train(engine.get(), {.steps = 2, .evaluate_every = 1});
    for (int rank = 0; rank < ranks.world(); ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      ASSERT_EQ(run.errors[at], "");
      const std::uint64_t train = planned_bytes(ranks.plan(rank), "train");
      EXPECT_EQ(run.train[at].comm_bytes, train) << "stage " << stage << " rank " << rank;
      EXPECT_EQ(run.eval[at].comm_bytes, planned_bytes(ranks.plan(rank), "eval"));
      EXPECT_EQ(train > 0, ranks.world() > 1);
    }
  }
}

// Any shape, any world, any schedule.
ToyShape random_shape(std::uint64_t seed) {
  PhiloxStream random(seed, 91);
  const auto below = [&](int n) {
    return static_cast<int>(random.next_below(static_cast<std::uint64_t>(n)));
  };
  ToyShape shape;
  shape.layers = 1 + below(3);
  shape.micro_batches = 1 + below(4);
  shape.group = below(2) == 0 ? 1 : shape.micro_batches;
  shape.kept_layers = below(shape.layers + 1);
  shape.layer_elements = 1 + below(9000);
  shape.embedding_elements = 1 + below(50000);
  shape.tokens = 1 + below(20);
  shape.tile_elements = norm_chunk_elements * (1 + below(3));
  shape.tied = below(2) == 0;
  shape.update = below(2) == 0 ? ToyUpdate::produces_weight : ToyUpdate::updates_weight;
  shape.world = std::array{2, 3, 5, 7}[static_cast<std::size_t>(below(4))];
  shape.zero_stage = below(4);
  return shape;
}

std::string name_of(const ToyShape& shape, std::uint64_t seed) {
  return "seed " + std::to_string(seed) + ": world " + std::to_string(shape.world) + ", stage " +
         std::to_string(shape.zero_stage) + ", group " + std::to_string(shape.group) + " of " +
         std::to_string(shape.micro_batches);
}

class RankSchedules : public ::testing::TestWithParam<ExecutionMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, RankSchedules, testing::all_modes(), testing::mode_name);

// Groups of micro-batches, tied and kept layers, both kinds of update in all three orders, and
// updates that pass through the device.
TEST_P(RankSchedules, GiveThePlainBitsForRandomShapes) {
  const auto count = static_cast<std::uint64_t>(rounds(12, 5));
  const std::uint64_t first = static_cast<std::uint64_t>(GetParam()) * count;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const ToyShape shape = random_shape(seed);
    const Policy policy = random_schedule(seed);
    ToyRunOptions options{.steps = 3, .evaluate_every = 2};
    if (policy.update_order == UpdateOrder::during_backward) options.max_grad_norm = 0;
    options.executor = {GetParam(), seed, Poison::on};
    const ToyRanks ranks(shape, policy);
    expect_same(ranks.plainly(options), trained(ranks, options, seed), name_of(shape, seed));
  }
}

// 1 rank of 8 micro-batches, 2 of 4, 4 of 2 and 8 of 1 train on the same data.
TEST(RankSchedules, TradePlacesWithMicroBatches) {
  ToyRunOptions options{.steps = 4, .evaluate_every = 0};
  const auto of_world = [&](int world) {
    ToyShape shape = uneven_shape(world, 3);
    shape.micro_batches = 8 / world;
    return trained(ToyRanks(shape, random_policy(2)), options, 2);
  };
  const Trajectory one = of_world(1);
  for (const int world : {2, 4, 8}) {
    const Trajectory many = of_world(world);
    for (std::size_t step = 0; step < one.losses.size(); ++step) {
      EXPECT_NEAR(many.losses[step], one.losses[step], 1e-12);  // added in another order
      EXPECT_NEAR(many.norms[step], one.norms[step], 1e-12);
    }
    EXPECT_TRUE(many.weights == one.weights) << "world " << world;
  }
}

}  // namespace
}  // namespace strata
