// Whether collectives hide behind compute in the simulated step of a small plan for two ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "strata/plan/prediction.hpp"
#include "strata/plan/simulate.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "unit/plan/hand_schedule.hpp"

namespace strata {
namespace {

using testing::all_on;
using testing::make_toy_program;
using testing::roomy_limits;
using testing::unit_machine;

constexpr double forward_seconds = 1, backward_seconds = 3, loss_seconds = 2;
constexpr int layers = 8;

int add_seconds(Program& program, double seconds) {
  program.works.push_back({{{KernelClass::matmul, DType::bf16, seconds, 0, 1}}});
  return static_cast<int>(program.works.size()) - 1;
}

Program two_ranks(int stage, int micro_batches = 1) {
  Program program = make_toy_program({.layers = layers,
                                      .micro_batches = micro_batches,
                                      .layer_elements = 1 << 16,
                                      .embedding_elements = 1 << 12,
                                      .tied = false,
                                      .world = 2,
                                      .zero_stage = stage});
  const int forward = add_seconds(program, forward_seconds),
            backward = add_seconds(program, backward_seconds),
            loss = add_seconds(program, loss_seconds);
  for (Segment& segment : program.segments) {
    if (segment.kind == SegmentKind::forward) segment.work = forward;
    if (segment.kind == SegmentKind::backward) segment.work = backward;
    if (segment.kind == SegmentKind::loss) segment.work = loss;
  }
  return program;
}

// Everything but compute and collectives is so fast that it does not show.
MachineProfile machine_with(double comm_bytes_per_s) {
  MachineProfile machine = unit_machine();
  machine.ranks = 2;
  machine.link = {1e12, 1e12, 0};
  machine.host.updates.clear();
  machine.comm = {comm_bytes_per_s, comm_bytes_per_s, 0};
  return machine;
}

Simulation simulated(const Program& program, Tier tier, double comm_bytes_per_s) {
  Policy policy = all_on(tier);
  policy.weight_slots = policy.gradient_slots = 3;
  const Plan plan = make_plan(program, roomy_limits(), policy);
  return simulate(program, plan, "train", machine_with(comm_bytes_per_s));
}

double at(const std::array<double, num_resources>& values, Resource resource) {
  return values[static_cast<std::size_t>(resource)];
}
double exposed(const Simulation& simulation) {
  return simulation.compute_waits[static_cast<std::size_t>(Lane::comm)];
}

// A layer's slice, in bytes: f32, half of it another rank's.
constexpr double layer_bytes = (1 << 16) * 4 / 2.0;
// What no order can hide: the first gather and the last reductions of a step.
constexpr double ends = 4 * layer_bytes;

class OverlapOfStage : public ::testing::TestWithParam<std::tuple<int, Tier>> {
 protected:
  Simulation step(double comm_bytes_per_s, int micro_batches = 1) const {
    return simulated(two_ranks(std::get<0>(GetParam()), micro_batches), std::get<1>(GetParam()),
                     comm_bytes_per_s);
  }
};

TEST_P(OverlapOfStage, HidesFastCollectivesBehindCompute) {
  // A forward pass of one layer is as long as three collectives of one.
  const double rate = 3 * layer_bytes / forward_seconds;
  const Simulation fast = step(rate);
  const double comm = at(fast.busy, Resource::comm), compute = at(fast.busy, Resource::compute);
  EXPECT_GT(comm, 4 * ends / rate) << "there is something to hide";
  EXPECT_LE(fast.step_seconds, compute + ends / rate);
  EXPECT_LE(exposed(fast), ends / rate);
}

TEST_P(OverlapOfStage, HidesThemBehindEveryMicroBatch) {
  const double rate = 3 * layer_bytes / forward_seconds;
  const Simulation fast = step(rate, 3);
  // Where one micro-batch turns into the next, there is less to hide behind.
  EXPECT_LE(fast.step_seconds, at(fast.busy, Resource::compute) + 3 * ends / rate);
}

TEST_P(OverlapOfStage, ExposesWhatOfSlowCollectivesComputeDoesNotCover) {
  const double rate = 0.2 * layer_bytes / forward_seconds;
  const Simulation slow = step(rate);
  const double comm = at(slow.busy, Resource::comm), compute = at(slow.busy, Resource::compute);
  ASSERT_GT(comm, compute);
  EXPECT_EQ(slow.bound_by, Resource::comm);
  EXPECT_GE(slow.step_seconds, comm * (1 - 1e-9));
  EXPECT_GE(exposed(slow), comm - compute - 1e-6);
  EXPECT_NEAR(exposed(slow), slow.step_seconds - compute, 1e-3 * slow.step_seconds);
}

TEST_P(OverlapOfStage, IsSlowerTheSlowerCollectivesAre) {
  double before = 0;
  for (const double share : {100.0, 3.0, 1.0, 0.5, 0.2}) {
    const double seconds = step(share * layer_bytes / forward_seconds).step_seconds;
    EXPECT_GE(seconds, before * (1 - 1e-9)) << share;
    before = seconds;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, OverlapOfStage,
                         ::testing::Combine(::testing::Values(0, 1, 2, 3),
                                            ::testing::Values(Tier::device, Tier::host)),
                         [](const auto& of) {
                           return "Stage" + std::to_string(std::get<0>(of.param)) +
                                  std::string(tier_name(std::get<1>(of.param)));
                         });

// On the compute lane, where an op that waits keeps all behind it waiting.
TEST(OverlapOfRanks, AddsOnTheAcceleratorOnlyAfterTheNextBackwardHasRun) {
  for (const int stage : {0, 1, 2, 3}) {
    const Program program = two_ranks(stage);
    Policy policy = all_on(Tier::device);
    const Plan plan = make_plan(program, roomy_limits(), policy);
    const Schedule& train = plan.schedules[0];
    int last_backward = layers + 1, checked = 0;  // a block
    for (const OpId id : train.lanes[static_cast<std::size_t>(Lane::compute)]) {
      const Op& op = train.ops[id.index()];
      const Segment& segment = program.segment(op.segment);
      if (op.kind == OpKind::run && segment.kind == SegmentKind::backward)
        last_backward = segment.block;
      if (op.kind != OpKind::square || segment.kind != SegmentKind::backward) continue;
      if (segment.block == 0) continue;  // nothing runs after it
      EXPECT_LT(last_backward, segment.block) << "stage " << stage;
      ++checked;
    }
    EXPECT_GE(checked, layers) << "stage " << stage;
  }
}

TEST(OverlapOfRanks, IsToldByItsCause) {
  const Program program = two_ranks(3);
  const Plan plan = make_plan(program, roomy_limits(), all_on(Tier::device));
  const Prediction prediction =
      predict(program, plan, machine_with(0.2 * layer_bytes / forward_seconds), {});
  EXPECT_THAT(format_headline(prediction), ::testing::HasSubstr("by comm"));
  EXPECT_THAT(format_waterfall(prediction),
              ::testing::HasSubstr("wait for gathers and reductions among ranks"));
}

}  // namespace
}  // namespace strata
