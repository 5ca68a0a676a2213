#include "strata/telemetry/resource_use.hpp"

#include <gtest/gtest.h>

#include "strata/telemetry/roofline.hpp"
#include "support/machines.hpp"
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

TEST(BusyTime, CountsTimeOnceInWhichTwoLanesOfOneLinkWork) {
  const Schedule schedule = schedule_of({op_on(Lane::h2d, 0), op_on(Lane::state_h2d, 1),
                                         op_on(Lane::h2d, 2), op_on(Lane::compute, 3)});
  BusyTime time(schedule);
  time.add(
      std::vector<OpTime>{{OpId{0}, 1, 3}, {OpId{1}, 2, 5}, {OpId{2}, 7, 8}, {OpId{3}, -1, 0.5}});
  const PerResource<double> busy = time.within(-10, 10);
  EXPECT_EQ(of(busy, Resource::up), 5);
  EXPECT_EQ(of(busy, Resource::compute), 1.5);
  EXPECT_EQ(of(busy, Resource::down), 0);
}

TEST(BusyTime, CountsASpanWithinAnotherOnce) {
  const Schedule schedule = schedule_of({op_on(Lane::read, 0), op_on(Lane::read, 1)});
  BusyTime time(schedule);
  time.add(std::vector<OpTime>{{OpId{0}, 0, 10}, {OpId{1}, 2, 3}});
  EXPECT_EQ(of(time.within(0, 10), Resource::nvme_read), 10);
}

// A step's writes go on into the next step, beside its own and into the one after.
TEST(BusyTime, OfAWindowIsOfAllStepsAndNeverMoreThanTheWindow) {
  const Schedule schedule = schedule_of({op_on(Lane::write, 0), op_on(Lane::state_write, 1)});
  BusyTime time(schedule);
  time.add(std::vector<OpTime>{{OpId{0}, 5, 6}, {OpId{1}, 9, 14}});
  EXPECT_EQ(of(time.within(0, 10), Resource::nvme_write), 2);
  time.add(std::vector<OpTime>{{OpId{0}, 11, 13}, {OpId{1}, 14, 31}});
  EXPECT_EQ(of(time.within(10, 20), Resource::nvme_write), 10);
  EXPECT_EQ(of(time.within(22, 30), Resource::nvme_write), 8) << "between windows: an evaluation";
  EXPECT_EQ(of(time.within(30, 40), Resource::nvme_write), 1);
  EXPECT_EQ(of(time.within(40, 50), Resource::nvme_write), 0);
}

Op transfer_on(Lane lane, std::int32_t id, OpKind kind, Tier from, Tier to, std::uint64_t bytes) {
  Op op = op_on(lane, id, kind);
  op.operands = {bytes_on(from, bytes), bytes_on(to, bytes)};
  return op;
}

TEST(TransferSeconds, AreThoseInWhichTheStepMovedBytesOverTheLink) {
  Op gather = op_on(Lane::comm, 2, OpKind::gather);
  gather.operands = {bytes_on(Tier::device, 10), bytes_on(Tier::device, 80)};
  Plan plan;
  const Schedule schedule = schedule_of(
      {transfer_on(Lane::h2d, 0, OpKind::copy, Tier::host, Tier::device, 10),
       transfer_on(Lane::comm, 1, OpKind::copy, Tier::device, Tier::device, 10), gather});
  const PerResource<double> seconds = transfer_seconds(
      plan, schedule, std::vector<OpTime>{{OpId{0}, 1, 3}, {OpId{1}, 0, 9}, {OpId{2}, 8, 12}});
  EXPECT_EQ(of(seconds, Resource::up), 2);
  EXPECT_EQ(of(seconds, Resource::comm), 4) << "a copy within the device crosses no link";
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

TEST(MovedBytes, AreThoseThatThePredictionCounts) {
  const Program program = testing::worked_toy({.layers = 2, .world = 2, .zero_stage = 3}, 1e6);
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Plan plan = make_plan(program, testing::roomy_limits(), testing::random_policy(seed));
    const Simulation simulation = simulate(program, plan, "train", testing::slow_machine(seed));
    const auto bytes = moved_bytes(plan, *plan.schedule("train"));
    for (std::size_t i = 0; i < num_resources; ++i)
      if (is_link(static_cast<Resource>(i))) {
        EXPECT_EQ(simulation.bytes[i], bytes[i]) << i;
      }
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
  roofline.measured.transfer[static_cast<std::size_t>(Resource::up)] = 1.5;
  roofline.measured.waits[static_cast<std::size_t>(Resource::up)] = 0.25;
  roofline.bytes[static_cast<std::size_t>(Resource::up)] = 3'000'000'000;
  roofline.predicted = prediction_of(schedule, simulation);
  return roofline;
}

// Of a step of 2 s: a write that goes on for 0.5 s into the next, beside a read that began 0.25 s
// before the step.
TEST(PredictedUse, IsOfAStepAmongItsLike) {
  const Schedule schedule = schedule_of({op_on(Lane::write, 0), op_on(Lane::read, 1),
                                         op_on(Lane::write, 2), op_on(Lane::compute, 3)});
  Simulation simulation;
  simulation.step_seconds = 2;
  simulation.ops = {
      {OpId{0}, 1.5, 2.5}, {OpId{1}, -0.25, 0.5}, {OpId{2}, 0.25, 1.0}, {OpId{3}, 0, 7}};
  const StepUse use = predicted_use(schedule, simulation);
  EXPECT_EQ(of(use.busy, Resource::nvme_write), 1.5) << "twice from 0.25 to 0.5";
  EXPECT_EQ(of(use.busy, Resource::nvme_read), 0.75);
  EXPECT_EQ(of(use.busy, Resource::compute), 2);
  simulation.step_seconds = 0;
  EXPECT_EQ(of(predicted_use(schedule, simulation).busy, Resource::compute), 0);
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

TEST(FormatRoofline, TellsWhatTheModelCameTo) {
  Roofline roofline = measured_and_predicted();
  roofline.model.flops = 5e12;
  EXPECT_NE(format_roofline(roofline).find("by compute\nmodel    2.00 TFLOP/s on each device\n"),
            std::string::npos);
  roofline.model.peak_flops_per_s = 8e12;
  EXPECT_NE(format_roofline(roofline).find(
                "model    2.00 TFLOP/s on each device, MFU 25% of 8.00 TFLOP/s\n"),
            std::string::npos);
}

TEST(FormatRoofline, IsEmptyWithoutAStep) { EXPECT_EQ(format_roofline({}), ""); }

TEST(FormatPrediction, SaysWhatBoundsTheStep) {
  EXPECT_EQ(format_prediction(*measured_and_predicted().predicted, 1024),
            "2.00 s predicted (512 tok/s); bound 1.88 s by compute");
}

}  // namespace
}  // namespace strata
