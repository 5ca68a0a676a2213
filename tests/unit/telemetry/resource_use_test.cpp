#include "strata/telemetry/resource_use.hpp"

#include <gtest/gtest.h>

#include "strata/telemetry/roofline.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

Op op_on(Lane lane, std::int32_t id, OpKind kind = OpKind::run) {
  Op op;
  op.id = OpId{id};
  op.kind = kind;
  op.lane = lane;
  return op;
}

Operand bytes_on(Tier tier, std::uint64_t bytes) { return {{}, {tier, 0, 0, bytes}, Access::read}; }

Schedule schedule_of(std::vector<Op> ops) {
  Schedule schedule;
  schedule.ops = std::move(ops);
  for (const Op& op : schedule.ops)
    schedule.lanes[static_cast<std::size_t>(op.lane)].push_back(op.id);
  return schedule;
}

double of(const PerResource<double>& values, Resource resource) {
  return values[static_cast<std::size_t>(resource)];
}

TEST(BusySeconds, CountsTimeOnceInWhichTwoLanesOfOneLinkWork) {
  const Schedule schedule = schedule_of({op_on(Lane::h2d, 0), op_on(Lane::state_h2d, 1),
                                         op_on(Lane::h2d, 2), op_on(Lane::compute, 3)});
  const std::vector<OpTime> times{
      {OpId{0}, 1, 3}, {OpId{1}, 2, 5}, {OpId{2}, 7, 8}, {OpId{3}, -1, 0.5}};
  const PerResource<double> busy = busy_seconds(schedule, times);
  EXPECT_EQ(of(busy, Resource::up), 5);
  EXPECT_EQ(of(busy, Resource::compute), 1.5);
  EXPECT_EQ(of(busy, Resource::down), 0);
}

TEST(BusySeconds, CountsASpanWithinAnotherOnce) {
  const Schedule schedule = schedule_of({op_on(Lane::read, 0), op_on(Lane::read, 1)});
  EXPECT_EQ(of(busy_seconds(schedule, std::vector<OpTime>{{OpId{0}, 0, 10}, {OpId{1}, 2, 3}}),
               Resource::nvme_read),
            10);
}

TEST(MovedBytes, RoundsWhatADriveMovesAndNothingElse) {
  Op op = op_on(Lane::read, 0, OpKind::read);
  op.operands = {bytes_on(Tier::nvme, 5000), bytes_on(Tier::host, 5000)};
  EXPECT_EQ(moved_bytes(op, 4096), 8192u);
  op.kind = OpKind::copy;
  EXPECT_EQ(moved_bytes(op, 4096), 5000u);
  op.kind = OpKind::update;
  EXPECT_EQ(moved_bytes(op, 4096), 0u);
}

TEST(MovedBytes, OfACollectiveAreThoseOfOtherRanks) {
  Op op = op_on(Lane::comm, 0, OpKind::gather);
  op.operands = {bytes_on(Tier::device, 1000), bytes_on(Tier::device, 8000)};
  EXPECT_EQ(moved_bytes(op, 4096), 7000u);
  op.kind = OpKind::reduce;
  op.operands = {bytes_on(Tier::device, 8000), bytes_on(Tier::device, 1000)};
  EXPECT_EQ(moved_bytes(op, 4096), 7000u);
}

TEST(MovedBytes, OfAStepAgreeWithTheTrafficThatThePlanReports) {
  const Program program = testing::make_toy_program({.layers = 2});
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Plan plan = make_plan(program, testing::roomy_limits(), testing::random_policy(seed));
    const auto bytes = moved_bytes(plan, *plan.schedule("train"));
    const NvmeTraffic traffic = nvme_traffic(plan, "train");
    EXPECT_EQ(bytes[static_cast<std::size_t>(Resource::nvme_read)], traffic.read_bytes());
    EXPECT_EQ(bytes[static_cast<std::size_t>(Resource::nvme_write)], traffic.written_bytes());
  }
}

StepUse use_of(double seconds, double compute = 0) {
  StepUse use;
  use.seconds = seconds;
  use.busy[static_cast<std::size_t>(Resource::compute)] = compute;
  return use;
}

TEST(UseHistory, TakesEachNumbersMedianByItself) {
  UseHistory history;
  EXPECT_EQ(history.median(), StepUse{});
  history.add(use_of(3, 1));
  EXPECT_EQ(history.median(), use_of(3, 1));
  history.add(use_of(1, 2));
  EXPECT_EQ(history.median(), use_of(2, 1.5));
  history.add(use_of(100, 0));
  EXPECT_EQ(history.median(), use_of(3, 1));
  EXPECT_EQ(history.num_steps(), 3);
}

TEST(UseHistory, KeepsAnEvenShareOfALongRun) {
  UseHistory history(8);
  for (int i = 0; i <= 1000; ++i) history.add(use_of(i));
  EXPECT_EQ(history.num_steps(), 1001);
  EXPECT_NEAR(history.median().seconds, 500, 130);
}

// 2 s of compute at full rate and 1 s of copies, in a step of 2.5 s that was predicted at 2 s.
Roofline measured_and_predicted() {
  const Schedule schedule = schedule_of({op_on(Lane::compute, 0), op_on(Lane::h2d, 1)});
  Simulation simulation;
  simulation.step_seconds = 2;
  simulation.busy[static_cast<std::size_t>(Resource::compute)] = 1.875;
  simulation.busy[static_cast<std::size_t>(Resource::up)] = 1;
  simulation.compute_waits[static_cast<std::size_t>(Lane::state_h2d)] = 0.125;
  simulation.ops = {{OpId{0}, 0, 1.875}, {OpId{1}, 0, 1.25}};
  Roofline roofline;
  roofline.num_steps = 7;
  roofline.measured = use_of(2.5, 2.25);
  roofline.measured.busy[static_cast<std::size_t>(Resource::up)] = 1.5;
  roofline.measured.waits[static_cast<std::size_t>(Resource::up)] = 0.25;
  roofline.bytes[static_cast<std::size_t>(Resource::up)] = 3'000'000'000;
  roofline.predicted = prediction_of(schedule, simulation);
  return roofline;
}

TEST(FormatRoofline, PutsThePredictionBesideTheMeasurement) {
  EXPECT_EQ(format_roofline(measured_and_predicted()),
            "step     2.50 s measured (median of 7), 2.00 s predicted (+25%); 75% of the bound, "
            "1.88 s by compute\n"
            "         full rate  of step  busy, predicted    busy  of step       rate  waited for, "
            "predicted  waited for\n"
            "compute     1.88 s      75%           1.88 s  2.25 s      90%          -              "
            "        -           -\n"
            "h2d         1.00 s      40%           1.25 s  1.50 s      60%  2.00 GB/s              "
            "  0.125 s     0.250 s\n");
}

TEST(FormatRoofline, TellsWhatWasReachedWithoutAPrediction) {
  Roofline roofline = measured_and_predicted();
  roofline.predicted.reset();
  EXPECT_EQ(format_roofline(roofline),
            "step     2.50 s measured (median of 7)\n"
            "           busy  of step       rate  waited for\n"
            "compute  2.25 s      90%          -           -\n"
            "h2d      1.50 s      60%  2.00 GB/s     0.250 s\n");
}

TEST(FormatRoofline, IsEmptyWithoutAStep) { EXPECT_EQ(format_roofline({}), ""); }

TEST(FormatPrediction, SaysWhatBoundsTheStep) {
  EXPECT_EQ(format_prediction(*measured_and_predicted().predicted, 1024),
            "predicted 2.00 s a step (512 tok/s); bound 1.88 s by compute");
}

}  // namespace
}  // namespace strata
