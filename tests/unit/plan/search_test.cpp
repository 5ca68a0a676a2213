#include "strata/plan/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strata/core/error.hpp"
#include "support/machines.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

using testing::slow_machine;
using testing::ToyShape;
using testing::worked_toy;

// Four tiles of each role: a quarter of the bytes is one tile.
constexpr ToyShape tiny{.layers = 2,
                        .micro_batches = 2,
                        .layer_elements = 4096,
                        .embedding_elements = 4096,
                        .tokens = 64,
                        .hidden = 16,
                        .tile_elements = 4096,
                        .tied = false};

ProgramMaker tiny_maker(double flops) {
  return [=](const ProgramVariant&) { return worked_toy(tiny, flops); };
}

SearchSpace placement_space() {
  SearchSpace space;
  space.variants = space.engines = false;
  space.micro_batches = tiny.micro_batches;
  return space;
}

std::vector<TierFractions> quarters(int tiers) {
  std::vector<TierFractions> all;
  for (int device = 0; device <= 4; ++device)
    for (int nvme = 0; nvme <= (tiers == 3 ? 4 - device : 0); ++nvme)
      all.push_back({device / 4.0, (4 - device - nvme) / 4.0, nvme / 4.0});
  return all;
}

Policy placed(const TierFractions& weight, const TierFractions& gradient,
              const TierFractions& state, const TierFractions& activation) {
  Policy policy;
  const auto set = [&](Role role, const TierFractions& f) {
    policy.fractions[static_cast<std::size_t>(role)] = f;
  };
  set(Role::weight, weight);
  set(Role::gradient, gradient);
  for (const Role role : {Role::master, Role::moment1, Role::moment2}) set(role, state);
  set(Role::activation, activation);
  return policy;
}

bool fits(const Plan& plan, const TierLimits& limits) {
  return plan.tier_bytes[0] <= limits.device_bytes && plan.tier_bytes[1] <= limits.host_bytes;
}

constexpr double nothing_fits = 1e300;

// The best of every placement in quarters.
double exhaustive(const Program& program, const TierLimits& limits, const MachineProfile& machine,
                  Policy slots) {
  const int tiers = limits.drive_bytes.empty() ? 2 : 3;
  TierLimits open = limits;
  open.device_bytes = open.host_bytes = 1ull << 40;
  double best = nothing_fits;
  const auto all = quarters(tiers);
  for (const TierFractions& weight : all)
    for (const TierFractions& gradient : all)
      for (const TierFractions& state : all)
        for (const TierFractions& activation : {TierFractions{1, 0, 0}, TierFractions{0, 1, 0}}) {
          Policy policy = placed(weight, gradient, state, activation);
          policy.weight_slots = slots.weight_slots;
          policy.state_slots = slots.state_slots;
          policy.staging_slots = slots.staging_slots;
          const Plan plan = make_plan(program, open, policy);
          if (!fits(plan, limits)) continue;
          best = std::min(best, simulate(program, plan, "train", machine).step_seconds);
        }
  return best;
}

TierLimits tight_limits(std::uint64_t seed, int drives) {
  TierLimits limits;
  limits.device_bytes = (180 + 40 * (seed % 7)) * 1024;
  limits.host_bytes = (200 + 60 * (seed % 5)) * 1024;
  if (drives == 0) limits.host_bytes += 400 * 1024;
  for (int i = 0; i < drives; ++i) limits.drive_bytes.push_back(1ull << 40);
  return limits;
}

TEST(Search, FindsWhatTryingEverythingFinds) {
  for (std::uint64_t seed = 0; seed < 32; ++seed) {
    const int drives = seed % 16 == 9 ? 1 : 0;
    const MachineProfile machine = slow_machine(seed, drives);
    const TierLimits limits = tight_limits(seed, drives);
    const double flops = 1e5 * static_cast<double>(1 + seed % 4 * 5);
    SearchSpace space = placement_space();
    space.slots = false;
    const double best = exhaustive(worked_toy(tiny, flops), limits, machine, {});
    try {
      const SearchResult found = search(tiny_maker(flops), limits, machine, {}, space);
      EXPECT_LE(found.simulation.step_seconds, 1.01 * best) << "seed " << seed;
    } catch (const OutOfMemory&) {
      EXPECT_EQ(best, nothing_fits) << "seed " << seed;
    }
  }
}

TEST(Search, ReturnsAPlanThatFitsAndTakesAsLongAsItSays) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const MachineProfile machine = slow_machine(seed);
    const TierLimits limits = tight_limits(seed, 2);
    SearchSpace space = placement_space();
    space.engines = true;
    space.update_orders = {UpdateOrder::deferred, UpdateOrder::during_backward};
    const SearchResult found = search(tiny_maker(1e6), limits, machine, {}, space);
    const Program program = worked_toy(tiny, 1e6);
    const Plan plan = make_plan(program, limits, found.policy);
    EXPECT_TRUE(verify(program, plan).empty()) << "seed " << seed;
    EXPECT_EQ(simulate(program, plan, "train", machine).step_seconds,
              found.simulation.step_seconds);
    EXPECT_LE(found.simulations, space.max_simulations);
  }
}

TEST(Search, GivesTheSameChoiceAgain) {
  const auto once = [] {
    SearchSpace space = placement_space();
    space.engines = true;
    return search(tiny_maker(1e6), tight_limits(3, 2), slow_machine(3), {}, space);
  };
  const SearchResult first = once(), second = once();
  EXPECT_EQ(first.simulation.step_seconds, second.simulation.step_seconds);
  EXPECT_EQ(first.simulations, second.simulations);
  EXPECT_EQ(first.policy.state_slots, second.policy.state_slots);
}

// Weights cross a slow link once for each group of micro-batches.
TEST(Search, PassesMicroBatchesThroughABlockTogetherWhereWeightsAreDear) {
  MachineProfile machine = slow_machine(0);
  machine.link = {20e6, 200e6, 0};
  machine.host.memory_bytes_per_s = 2e9;
  SearchSpace space = placement_space();
  space.variants = true;
  space.kept_layers = false;
  space.micro_batches = 4;
  space.fixed_roles = {Role::weight};  // in host memory
  ToyShape shape = tiny;
  shape.micro_batches = 4;
  const auto maker = [&](const ProgramVariant& variant) {
    shape.group = variant.accumulation_group;
    return worked_toy(shape, 1e5);
  };
  space.slots = false;
  const TierLimits limits = testing::roomy_limits(0);
  const SearchResult found = search(maker, limits, machine, {}, space);
  EXPECT_EQ(found.variant.accumulation_group, 4);
  space.accumulation_groups = false;
  const SearchResult fixed = search(maker, limits, machine, {}, space);
  EXPECT_EQ(fixed.variant.accumulation_group, 1);
  EXPECT_LT(found.simulation.step_seconds, fixed.simulation.step_seconds);
}

TEST(Search, LeavesWhatIsFixed) {
  SearchStart start;
  start.policy.fractions[static_cast<std::size_t>(Role::weight)] = {0.25, 0.75, 0};
  start.policy.state_slots = 3;
  start.policy.streamed_updates = 0.5;
  SearchSpace space = placement_space();
  space.fixed_roles = {Role::weight};
  space.fixed_slots = {&Policy::state_slots};
  const SearchResult found =
      search(tiny_maker(1e6), testing::roomy_limits(), slow_machine(1), start, space);
  EXPECT_EQ(found.policy.fractions[static_cast<std::size_t>(Role::weight)].device, 0.25);
  EXPECT_EQ(found.policy.state_slots, 3);
  EXPECT_EQ(found.policy.streamed_updates, 0.5);
  EXPECT_GT(found.policy.fractions[static_cast<std::size_t>(Role::master)].device, 0);
}

TEST(Search, FindsPlansThatSaveAndCommit) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SearchStart start;
    start.policy.background_saves = true;
    start.policy.versioned_state = seed % 2 == 0;
    SearchSpace space = placement_space();
    space.engines = true;
    space.update_orders = {UpdateOrder::deferred, UpdateOrder::during_backward};
    TierLimits limits = tight_limits(seed, 2);
    limits.host_bytes += 200 * 1024;
    const SearchResult found = search(tiny_maker(1e6), limits, slow_machine(seed), start, space);
    EXPECT_TRUE(found.policy.background_saves);
    EXPECT_EQ(found.policy.versioned_state, start.policy.versioned_state);
    const Program program = worked_toy(tiny, 1e6);
    EXPECT_TRUE(verify(program, make_plan(program, limits, found.policy)).empty()) << seed;
  }
}

TEST(Search, SpendsNoMoreThanItsBudget) {
  SearchSpace space = placement_space();
  space.max_simulations = 3;
  const SearchResult found =
      search(tiny_maker(1e6), tight_limits(1, 2), slow_machine(1), {}, space);
  EXPECT_LE(found.simulations, 3);
}

TEST(Search, SaysWhatIsMissingWhereWhenNothingFits) {
  TierLimits limits;
  limits.device_bytes = limits.host_bytes = 150 * 1024;
  try {
    search(tiny_maker(1e6), limits, slow_machine(1, 0), {}, placement_space());
    FAIL() << "fits";
  } catch (const OutOfMemory& refusal) {
    EXPECT_THAT(refusal.what(), ::testing::HasSubstr("no placement fits: tier "));
    EXPECT_THAT(refusal.what(), ::testing::HasSubstr("missing"));
    EXPECT_THAT(refusal.what(), ::testing::HasSubstr("offload.nvme_paths"));
    EXPECT_GT(refusal.wanted_bytes(), refusal.free_bytes());
  }
}

}  // namespace
}  // namespace strata
