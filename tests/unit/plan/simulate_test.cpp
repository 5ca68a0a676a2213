// Steps whose times can be worked out by hand.

#include "strata/plan/simulate.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "hand_schedule.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using testing::HandSchedule;
using testing::unit_machine;

void expect_near(double measured, double expected) {
  EXPECT_NEAR(measured, expected, 1e-9 * std::max(1.0, expected));
}

void expect_time(const Simulation& simulation, OpId op, double start, double end) {
  expect_near(simulation.ops[op.index()].start, start);
  expect_near(simulation.ops[op.index()].end, end);
}

double of(const std::array<double, num_lanes>& values, Lane lane) {
  return values[static_cast<std::size_t>(lane)];
}
double busy(const Simulation& simulation, Resource resource) {
  return simulation.busy[static_cast<std::size_t>(resource)];
}

TEST(Simulate, RunsTheOpsOfOneLaneOneAfterTheOther) {
  HandSchedule hand;
  const OpId a = hand.run(1), b = hand.run(2), c = hand.run(3);
  hand.close_step();
  const Simulation simulation = hand.simulate(unit_machine());
  expect_near(simulation.step_seconds, 6);
  expect_near(simulation.first_step_seconds, 6);
  expect_time(simulation, a, 0, 1);
  expect_time(simulation, b, 1, 3);
  expect_time(simulation, c, 3, 6);
  EXPECT_EQ(simulation.bound_by, Resource::compute);
  expect_near(simulation.bound_seconds(), 6);
  expect_near(simulation.flops, 6);
}

TEST(Simulate, OverlapsLanesAcrossSteps) {
  HandSchedule hand;
  const OpId fetch = hand.up(3);
  hand.run(5, {{fetch, 0}});
  const Simulation simulation = hand.simulate(unit_machine());
  expect_near(simulation.first_step_seconds, 8);
  expect_near(simulation.step_seconds, 5);
  expect_near(of(simulation.lane_busy, Lane::h2d), 3);
  expect_near(of(simulation.compute_waits, Lane::h2d), 0);
}

TEST(Simulate, HasTwoStepsInFlightAtMost) {
  HandSchedule hand;
  const OpId fetch = hand.up(1), run = hand.run(5, {{fetch, 0}});
  const Simulation simulation = hand.simulate(unit_machine());
  expect_time(simulation, fetch, 0, 1);  // from the end of the step before the last
  expect_time(simulation, run, 5, 10);
}

TEST(Simulate, TakesTheSlowerLaneForTheStepAndBlamesIt) {
  HandSchedule hand;
  const OpId fetch = hand.up(7);
  hand.run(5, {{fetch, 0}});
  const Simulation simulation = hand.simulate(unit_machine());
  expect_near(simulation.step_seconds, 7);
  EXPECT_EQ(simulation.bound_by, Resource::up);
  expect_near(of(simulation.compute_waits, Lane::h2d), 2);
}

// A fetch waits for the run that last used its slot.
double prefetch_step(int slots) {
  HandSchedule hand;
  const int blocks = 6;
  std::vector<OpId> runs;
  for (int block = 0; block < blocks; ++block) {
    std::vector<Edge> slot_free;
    const int user = block - slots;
    if (user >= 0) slot_free = {{runs[static_cast<std::size_t>(user)], 0}};
    // Of the last step: the run at the same distance, by the number its op will have.
    if (user < 0) slot_free = {{OpId{2 * (user + blocks) + 1}, 1}};
    const OpId fetch = hand.up(2, slot_free);
    runs.push_back(hand.run(3, {{fetch, 0}}));
  }
  return hand.simulate(unit_machine()).step_seconds;
}

TEST(Simulate, FetchesAheadAsFarAsSlotsAllow) {
  expect_near(prefetch_step(1), 6 * 5);
  expect_near(prefetch_step(2), 6 * 3);
}

TEST(Simulate, FollowsAWaitBackToTheLaneThatWasLate) {
  HandSchedule hand;
  const OpId read = hand.read(4);
  const OpId fetch = hand.up(1, {{read, 0}});
  hand.run(2, {{fetch, 0}});
  hand.close_step();
  const Simulation simulation = hand.simulate(unit_machine());
  expect_near(simulation.step_seconds, 7);
  expect_near(of(simulation.compute_waits, Lane::read), 5);
  expect_near(of(simulation.compute_waits, Lane::h2d), 0);
}

TEST(Simulate, SharesADriveBetweenReadsAndWritesThatTakeTurns) {
  HandSchedule hand;
  const OpId read = hand.read(4), write = hand.write(3);
  hand.close_step();
  MachineProfile machine = unit_machine();
  machine.drives[0].read_bytes_per_s = 2;
  const Simulation simulation = hand.simulate(machine);
  expect_time(simulation, read, 0, 4);   // half of the time is the write's
  expect_time(simulation, write, 0, 5);  // the last second alone
  expect_near(simulation.bound_seconds(), 3);
  expect_near(simulation.least_seconds, 5);
}

TEST(Simulate, LetsADriveDoBothDirectionsByItsMixedRate) {
  HandSchedule hand;
  const OpId read = hand.read(4), write = hand.write(3);
  hand.close_step();
  MachineProfile machine = unit_machine();
  machine.drives[0].read_bytes_per_s = 2;
  machine.drives[0].mixed_bytes_per_s = 1.6;  // 0.8 of 2 and of 1: 1.2 times what turns would give
  const Simulation simulation = hand.simulate(machine);
  expect_time(simulation, read, 0, 2 / 0.6);
  expect_time(simulation, write, 0, 2 / 0.6 + 1);
}

TEST(Simulate, LetsADriveDoBothDirectionsAtOnceWhereTheSlowerIsNotSlowed) {
  HandSchedule hand;
  const OpId read = hand.read(4), write = hand.write(3);
  hand.close_step();
  MachineProfile machine = unit_machine();
  machine.drives[0].read_bytes_per_s = 2;
  machine.drives[0].mixed_bytes_per_s = 2;  // 1 of each, and writes alone make no more
  const Simulation simulation = hand.simulate(machine);
  expect_time(simulation, read, 0, 2);
  expect_time(simulation, write, 0, 3);
}

TEST(Simulate, SlowsADriveThatMixesWorseThanItTakesTurnsOnlyWhileItMixes) {
  HandSchedule hand;
  const OpId read = hand.read(4), write = hand.write(6);
  hand.close_step();
  MachineProfile machine = unit_machine();
  machine.drives[0].mixed_bytes_per_s = 0.8;  // each at 0.4
  const Simulation simulation = hand.simulate(machine);
  expect_time(simulation, read, 0, 10);
  expect_time(simulation, write, 0, 12);
  expect_near(simulation.least_seconds, 10);  // one after the other
}

TEST(Simulate, ServesEachDriveInOrderAndDrivesSideBySide) {
  HandSchedule hand;
  const OpId first = hand.read(3, {}, 0), second = hand.read(2, {}, 0), other = hand.read(4, {}, 1);
  hand.close_step();
  const Simulation simulation = hand.simulate(unit_machine(2));
  expect_time(simulation, first, 0, 3);
  expect_time(simulation, second, 3, 5);
  expect_time(simulation, other, 0, 4);
  expect_near(of(simulation.lane_busy, Lane::read), 5);
  expect_near(busy(simulation, Resource::nvme_read), 4.5);  // 9 bytes over both drives
  expect_near(simulation.least_seconds, 5);
}

TEST(Simulate, IssuesOnAnNvmeLaneInOrderThoughALaterOpCouldStart) {
  HandSchedule hand;
  const OpId run = hand.run(5);
  hand.read(1, {{run, 0}}, 0);
  const OpId ready = hand.read(1, {}, 1);
  hand.close_step();
  expect_time(hand.simulate(unit_machine(2)), ready, 5, 6);
}

TEST(Simulate, SharesADriveBetweenStepAndStateLanes) {
  HandSchedule hand;
  const OpId step = hand.read(2), state = hand.read(3, {}, 0, Lane::state_read);
  hand.close_step();
  const Simulation simulation = hand.simulate(unit_machine());
  expect_time(simulation, step, 0, 4);
  expect_time(simulation, state, 0, 5);
}

// The second drive is slower for new files: what the first one has to do does not feel the save.
TEST(Simulate, SharesADriveBetweenASaveAndWhatElseIsThere) {
  MachineProfile machine = unit_machine(2);
  machine.drives[1].new_file_bytes_per_s = 0.5;
  HandSchedule hand;
  const OpId save = hand.save();  // 16 bytes, 32 seconds
  const OpId other = hand.write(4), write = hand.write(4, {}, 1), read = hand.read(4, {}, 1);
  hand.close_step();
  const Simulation simulation = hand.simulate(machine);
  expect_time(simulation, other, 0, 4);
  expect_time(simulation, write, 0, 12);  // a third each
  expect_time(simulation, read, 0, 12);
  expect_time(simulation, save, 0, 40);
  expect_near(simulation.least_seconds, 40);
}

TEST(Simulate, KnowsAStepThatNothingRunsBesideToItsEnd) {
  HandSchedule hand;
  const OpId run = hand.run(1), report = hand.report({{hand.norm({{run, 0}}), 0}});
  hand.write(5, {{report, 0}});
  EXPECT_NEAR(seconds_alone(hand.program(), hand.plan(), "train", unit_machine()), 6, 1e-6);
  EXPECT_NEAR(hand.simulate(unit_machine()).step_seconds, 5, 1e-6) << "steps overlap";
}

TEST(Simulate, SlowsBothDirectionsOfALinkThatCannotDoThemAtOnce) {
  HandSchedule hand;
  const OpId up = hand.up(3), down = hand.down(6);
  hand.close_step();
  MachineProfile machine = unit_machine();
  machine.link.both_bytes_per_s = 1.5;
  const Simulation simulation = hand.simulate(machine);
  expect_time(simulation, up, 0, 4);
  expect_time(simulation, down, 0, 7);
}

// Up and down each cross half of what host memory can do, the optimizer all of it.
TEST(Simulate, SharesHostMemoryAmongDmaAndTheOptimizer) {
  HandSchedule hand;
  MachineProfile machine = unit_machine();
  machine.host.updates.clear();
  machine.host.memory_bytes_per_s = 2;
  const double update_seconds = 4 * (4 + 8 + 8 + 2) / 2.0;  // alone: 22 bytes a parameter
  const OpId up = hand.up(10), down = hand.down(12), update = hand.update();
  hand.close_step();
  const Simulation simulation = hand.simulate(machine);
  expect_time(simulation, up, 0, 20);                       // 0.5 + 0.5 + 1: all at half speed
  expect_time(simulation, down, 0, 23);                     // then 0.5 + 1: at two thirds
  expect_time(simulation, update, 0, update_seconds + 11);  // 10 by 20, 12 by 23, the rest alone
  expect_near(busy(simulation, Resource::host_memory), 5 + 6 + update_seconds);
  EXPECT_EQ(simulation.bound_by, Resource::host_memory);
}

TEST(Simulate, LeavesWhatDrawsOnNoFullRateAtFullSpeed) {
  HandSchedule hand;
  const OpId one = hand.read(2, {}, 0), rival = hand.write(2, {}, 0), apart = hand.read(3, {}, 1);
  hand.close_step();
  const Simulation simulation = hand.simulate(unit_machine(2));
  expect_time(simulation, one, 0, 4);
  expect_time(simulation, rival, 0, 4);
  expect_time(simulation, apart, 0, 3);
}

TEST(Simulate, GivesEachRankItsShareOfDrivesAndHostMemory) {
  HandSchedule hand;
  hand.read(3);
  hand.update();
  MachineProfile machine = unit_machine();
  machine.ranks = 2;
  const std::vector<OpCost> costs = hand.costs(machine);
  expect_near(costs[0].seconds, 6);
  expect_near(costs[1].seconds, 8);
}

// Two blocks; a forward waits for its own block's update of the step before.
double step_with_updates(UpdateOrder order) {
  HandSchedule hand;  // an update takes 4 s
  const OpId first_update{6}, second_update{7};
  const OpId gate = order == UpdateOrder::deferred ? first_update : second_update;
  hand.run(2, {{gate, 1}});
  hand.run(2, {{second_update, 1}});
  const OpId last = hand.run(3);
  hand.run(3);
  const OpId norm = hand.norm({{OpId{3}, 0}});
  hand.report();
  EXPECT_EQ(hand.update({{norm, 0}}), first_update);
  EXPECT_EQ(hand.update(), second_update);
  EXPECT_EQ(last, OpId{2});
  return hand.simulate(unit_machine()).step_seconds;
}

TEST(Simulate, OverlapsDeferredUpdatesWithTheNextForward) {
  expect_near(step_with_updates(UpdateOrder::after_backward), 8 + 10);
  expect_near(step_with_updates(UpdateOrder::deferred), 8 + 2 + 6);
}

TEST(Simulate, HoldsTheNextStepUntilTheResultThatDecidesItIsReported) {
  HandSchedule hand;
  const OpId fetch = hand.up(2);
  const OpId run = hand.run(3, {{fetch, 0}});
  hand.norm({{run, 0}});
  hand.report();
  const Simulation simulation = hand.simulate(unit_machine());
  expect_near(simulation.step_seconds, 5);
  expect_near(of(simulation.compute_waits, Lane::h2d), 2);
}

TEST(Simulate, AccountsForEverySecondOfTheComputeLane) {
  HandSchedule hand;
  const OpId read = hand.read(4), fetch = hand.up(1, {{read, 0}});
  const OpId run = hand.run(2, {{fetch, 0}});
  const OpId down = hand.down(3, {{run, 0}});
  const OpId norm = hand.norm({{down, 0}});
  hand.report();
  hand.update({{norm, 0}});
  const Simulation simulation = hand.simulate(unit_machine());
  const double waited =
      std::accumulate(simulation.compute_waits.begin(), simulation.compute_waits.end(), 0.0);
  expect_near(simulation.step_seconds, 10);
  expect_near(waited + of(simulation.lane_busy, Lane::compute), simulation.step_seconds);
  expect_near(of(simulation.compute_waits, Lane::d2h), 3);
  expect_near(of(simulation.compute_waits, Lane::read), 5);
}

TEST(Simulate, CountsTheBytesOfAStepByResource) {
  HandSchedule hand;
  hand.up(3);
  hand.down(5, {}, Lane::state_d2h);
  hand.read(7, {}, 1);
  hand.write(9);
  hand.update();
  const Simulation simulation = hand.simulate(unit_machine(2));
  const auto bytes = [&](Resource of) { return simulation.bytes[static_cast<std::size_t>(of)]; };
  EXPECT_EQ(bytes(Resource::up), 3u);
  EXPECT_EQ(bytes(Resource::down), 5u);
  EXPECT_EQ(bytes(Resource::nvme_read), 7u);
  EXPECT_EQ(bytes(Resource::nvme_write), 9u);
  EXPECT_EQ(bytes(Resource::update), 4 * 22u);
  EXPECT_EQ(bytes(Resource::host_memory), 3 + 5 + 7 + 9 + 4 * 22u);
}

TEST(Simulate, RefusesAScheduleThatThePlanDoesNotHave) {
  HandSchedule hand;
  hand.run(1);
  EXPECT_THROW(simulate(hand.program(), hand.plan(), "eval", unit_machine()), ConfigError);
}

TEST(Simulate, RefusesAPlanWithMoreDrivesThanTheMachine) {
  HandSchedule hand;
  hand.read(1, {}, 1);
  try {
    hand.simulate(unit_machine(1));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("on 2 drives, machine 'unit' has 1"),
              std::string::npos)
        << error.what();
  }
}

TEST(Simulate, NamesTheRateThatAMachineDoesNotState) {
  HandSchedule hand;
  hand.down(1);
  MachineProfile machine = unit_machine();
  machine.link.down_bytes_per_s = 0;
  try {
    hand.simulate(machine);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("link.down_bytes_per_s"), std::string::npos);
  }
}

TEST(Simulate, RefusesACycleInsteadOfWaitingForever) {
  HandSchedule hand;
  const OpId fetch = hand.up(1, {{OpId{1}, 0}});
  hand.run(1, {{fetch, 0}});
  EXPECT_THROW(hand.simulate(unit_machine()), ConfigError);
}

TEST(Simulate, TakesNoTimeForAnEmptySchedule) {
  EXPECT_EQ(HandSchedule().simulate(unit_machine()).step_seconds, 0);
}

}  // namespace
}  // namespace strata
