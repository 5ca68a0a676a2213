// What is drawn of a step.

#include "strata/plan/plan_picture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/plan/occupancy.hpp"
#include "strata/core/error.hpp"
#include "support/toy_program.hpp"
#include "unit/plan/hand_schedule.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Drawn {
  explicit Drawn(const testing::ToyShape& shape = {}) : program(testing::make_toy_program(shape)) {
    Policy policy;
    for (TierFractions& fractions : policy.fractions) fractions = {0, 1, 0};
    for (const Role role : {Role::master, Role::moment1, Role::moment2})
      policy.fractions[static_cast<std::size_t>(role)] = {0.25, 0.25, 0.5};
    TierLimits limits;
    limits.device_bytes = limits.host_bytes = 1ull << 30;
    limits.drive_bytes = {1ull << 30};
    plan = make_plan(program, limits, policy);
    MachineProfile machine = testing::unit_machine();
    machine.accelerator.seconds_per_call = 1e4;
    simulation = simulate(program, plan, "train", machine);
  }
  std::vector<ClassBytes> held(Tier tier, int bins = 200) const {
    return occupancy(program, plan, *plan.schedule("train"), simulation, tier, bins);
  }
  std::string text() const { return draw_plan(program, plan, "train", simulation, "a <toy>"); }

  Program program;
  Plan plan;
  Simulation simulation;
};

std::uint64_t home_bytes(const Drawn& drawn, Role role, Tier tier) {
  std::uint64_t bytes = 0;
  for (const Shard& shard : drawn.program.shards)
    if (shard.role == role)
      for (const Region& home : drawn.plan.homes[shard.id.index()])
        if (home.tier == tier) bytes += home.bytes;
  return bytes;
}

TEST(Occupancy, NeverExceedsWhatIsReserved) {
  const Drawn drawn;
  for (const Tier tier : {Tier::device, Tier::host})
    for (const ClassBytes& bytes : drawn.held(tier))
      EXPECT_LE(total_of(bytes), drawn.plan.tier_bytes[static_cast<std::size_t>(tier)]);
}

TEST(Occupancy, HoldsTheStateThatLivesThereAllTheTime) {
  const Drawn drawn;
  const std::uint64_t master = home_bytes(drawn, Role::master, Tier::device);
  ASSERT_GT(master, 0u);
  for (const ClassBytes& bytes : drawn.held(Tier::device))
    EXPECT_EQ(bytes[static_cast<std::size_t>(MemoryClass::master)], master);
}

TEST(Occupancy, RisesAndFallsWithWhatPassesThrough) {
  const std::vector<ClassBytes> bins = Drawn().held(Tier::device);
  const auto weights = [](const ClassBytes& bytes) {
    return bytes[static_cast<std::size_t>(MemoryClass::weights)];
  };
  const auto [least, most] = std::ranges::minmax_element(bins, {}, weights);
  EXPECT_LT(weights(*least), weights(*most));
}

TEST(Occupancy, OfManyBinsIsThatOfFewWhereItIsTheMost) {
  const Drawn drawn;
  const auto peak = [](const std::vector<ClassBytes>& bins) {
    std::uint64_t most = 0;
    for (const ClassBytes& bytes : bins) most = std::max(most, total_of(bytes));
    return most;
  };
  EXPECT_EQ(peak(drawn.held(Tier::device, 10)), peak(drawn.held(Tier::device, 1000)));
}

TEST(PlanPicture, ShowsTiersLimitsLanesAndLegend) {
  const std::string text = Drawn().text();
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("GPU memory in use"), HasSubstr("CPU memory in use"),
                                   HasSubstr("GPU compute"), HasSubstr("NVMe write, state"),
                                   HasSubstr("the limit of 1.00 GiB lies above"),
                                   HasSubstr("backward"), HasSubstr("seconds")));
}

TEST(PlanPicture, EscapesItsTitleAndNeedsNothingFromElsewhere) {
  const std::string text = Drawn().text();
  EXPECT_THAT(text, HasSubstr("a &lt;toy&gt;"));
  EXPECT_THAT(text, Not(HasSubstr("href")));
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(PlanPicture, StaysOfBoundedSizeHoweverManyOpsThereAre) {
  const std::string small = Drawn().text();
  const Drawn large({.layers = 60, .micro_batches = 8, .layer_elements = 100'000});
  EXPECT_GT(large.plan.schedule("train")->ops.size(), 5000u);
  EXPECT_LT(large.text().size(), 600'000u);
  EXPECT_GT(large.text().size(), small.size() / 2);
}

TEST(PlanPicture, IsTheSameEachTime) { EXPECT_EQ(Drawn().text(), Drawn().text()); }

TEST(PlanPicture, RefusesASequenceThatThePlanHasNot) {
  const Drawn drawn;
  EXPECT_THROW(draw_plan(drawn.program, drawn.plan, "dream", drawn.simulation, ""), ConfigError);
}

}  // namespace
}  // namespace strata
