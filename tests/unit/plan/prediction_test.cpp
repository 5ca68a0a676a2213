// What a prediction says, against the simulation and the plan that it is made of.

#include "strata/plan/prediction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "strata/core/bytes.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "unit/plan/hand_schedule.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

constexpr double forward_flops = 4e3, backward_flops = 12e3, loss_flops = 9e3;

int add_work(Program& program, double flops) {
  program.works.push_back({{{KernelClass::matmul, DType::bf16, flops, 0, 1}}});
  return static_cast<int>(program.works.size()) - 1;
}

// A toy whose segments have work, its state on NVMe.
struct Toy {
  Toy() : program(testing::make_toy_program({.micro_batches = 2})) {
    const int forward = add_work(program, forward_flops),
              backward = add_work(program, backward_flops), loss = add_work(program, loss_flops);
    for (Segment& segment : program.segments) {
      if (segment.kind == SegmentKind::forward) segment.work = forward;
      if (segment.kind == SegmentKind::backward) segment.work = backward;
      if (segment.kind == SegmentKind::loss) segment.work = loss;
    }
    Policy policy;
    for (TierFractions& fractions : policy.fractions) fractions = {0, 1, 0};
    for (const Role role : {Role::master, Role::moment1, Role::moment2})
      policy.fractions[static_cast<std::size_t>(role)] = {0, 0.5, 0.5};
    TierLimits limits;
    limits.drive_bytes = {1ull << 30, 1ull << 30};
    plan = make_plan(program, limits, policy);
    machine.ranks = 4;
    machine.accelerator.peak_flops_per_s = 10;
    facts.tokens_per_step = 1000;
    facts.export_bytes = 5000;
    facts.checkpoint_bytes = 7000;
  }
  Prediction prediction() const { return predict(program, plan, machine, facts); }

  Program program;
  Plan plan;
  MachineProfile machine = testing::unit_machine(2);
  RunFacts facts;
};

double count(const Program& program, SegmentKind kind) {
  double segments = 0;
  for (const SegmentId id : program.sequence("train")->segments)
    segments += program.segment(id).kind == kind;
  return segments;
}

TEST(Prediction, CountsRecomputedWorkAsTimeButNotAsTheModels) {
  const Toy toy;
  const Prediction p = toy.prediction();
  const double forwards = count(toy.program, SegmentKind::forward);
  const double losses = count(toy.program, SegmentKind::loss);
  EXPECT_DOUBLE_EQ(p.model_flops, 3 * forward_flops * forwards + loss_flops * losses);
  EXPECT_DOUBLE_EQ(p.mfu, p.model_flops / p.simulation.step_seconds / 10);
}

TEST(Prediction, CountsTheTokensOfAllRanks) {
  const Prediction p = Toy().prediction();
  EXPECT_DOUBLE_EQ(p.tokens_per_s() * p.simulation.step_seconds, 1000);
}

TEST(Prediction, ExplainsTheWholeStep) {
  const Prediction p = Toy().prediction();
  double explained = p.simulation.lane_busy[static_cast<std::size_t>(Lane::compute)];
  for (const ExposedWait& wait : p.waits) explained += wait.seconds;
  EXPECT_NEAR(explained / p.simulation.step_seconds, 1, 0.01);
  EXPECT_FALSE(p.waits.empty()) << "a toy with its state on slow drives waits for it";
}

TEST(Prediction, ListsTheBusiestResourceFirstAndNoneAboveItsBound) {
  const Prediction p = Toy().prediction();
  ASSERT_FALSE(p.resources.empty());
  EXPECT_EQ(p.resources.front().resource, p.simulation.bound_by);
  for (const ResourceUse& use : p.resources)
    EXPECT_LE(use.achieved_per_s, use.bound_per_s * (1 + 1e-9)) << resource_name(use.resource);
}

TEST(Prediction, WearsTheDrivesByWhatAllRanksWrite) {
  Toy toy;
  for (DriveProfile& drive : toy.machine.drives) drive.endurance_bytes = 1e9;
  const Prediction p = toy.prediction();
  const NvmeTraffic traffic = nvme_traffic(toy.plan, "train");
  ASSERT_EQ(p.drives.size(), 2u);
  for (std::size_t drive = 0; drive < 2; ++drive) {
    const double written = 4.0 * static_cast<double>(traffic.drive_written_bytes[drive]);
    EXPECT_DOUBLE_EQ(p.drives[drive].written_bytes, written);
    EXPECT_DOUBLE_EQ(p.drives[drive].life_steps, 1e9 / written);
  }
  EXPECT_THAT(format_drives(p), HasSubstr("training without pause"));
}

TEST(Prediction, SaysWhenItDoesNotKnowWhatADriveEndures) {
  EXPECT_THAT(format_drives(Toy().prediction()), HasSubstr("endurance unknown"));
}

TEST(Prediction, TouchesInLoadingAndSavingNoMoreThanIsReserved) {
  const Toy toy;
  const std::vector<PhaseBytes> phases = phase_bytes(toy.program, toy.plan, {});
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[1].bytes, toy.plan.tier_bytes);
  for (const PhaseBytes& phase : phases)
    for (std::size_t tier = 0; tier < num_tiers; ++tier)
      EXPECT_LE(phase.bytes[tier], toy.plan.tier_bytes[tier]) << phase.name;
  EXPECT_GT(phases[0].bytes[1], 0u);
}

TEST(Prediction, SavesOnOneDrive) {
  const Prediction p = Toy().prediction();
  ASSERT_EQ(p.savings.size(), 2u);
  EXPECT_EQ(p.savings[0].bytes, 5000u);
  EXPECT_EQ(p.savings[1].bytes, 7000u);
  EXPECT_DOUBLE_EQ(p.savings[1].seconds, 7000) << "of two with 1 B/s each";
  EXPECT_FALSE(p.saving_step.has_value()) << "nothing is saved while training goes on";
}

// Of what the drives write slowest: the state of one step, and all of a checkpoint.
TEST(Prediction, TellsWhatAStepTakesThatACheckpointIsWrittenBeside) {
  Toy toy;
  Policy policy = toy.plan.policy;
  policy.background_saves = true;
  toy.plan = make_plan(toy.program, toy.plan.limits, policy);
  toy.facts.save_steps = 20;
  const Prediction p = toy.prediction();
  ASSERT_TRUE(p.saving_step.has_value());
  double state = 0;  // of one of the four ranks
  for (const Shard& shard : toy.program.shards)
    if (shard.role == Role::master || shard.role == Role::moment1 || shard.role == Role::moment2)
      state += static_cast<double>(shard.bytes());
  const double written = p.simulation.busy[static_cast<std::size_t>(Resource::nvme_write)];
  EXPECT_GT(p.saving_step->seconds, written + state / (1.0 / 4)) << "one drive, four ranks";
  const double more = p.saving_step->seconds - p.simulation.step_seconds;
  EXPECT_NEAR(p.saving_step->share, more / (20 * p.simulation.step_seconds + more), 1e-12);
  EXPECT_THAT(format_savings(p), HasSubstr("one every 20 steps"));
  const auto json = nlohmann::json::parse(plan_to_json(toy.program, toy.plan, p));
  const auto& checkpoint = json["prediction"]["saving"]["checkpoint"];
  EXPECT_EQ(checkpoint["step_seconds"], p.saving_step->seconds);
  EXPECT_EQ(checkpoint["share_of_time"], p.saving_step->share);
}

TEST(Prediction, SavesBesideTrainingInTheMemoryOfBoth) {
  Toy toy;
  Policy policy = toy.plan.policy;
  policy.background_saves = true;
  toy.plan = make_plan(toy.program, toy.plan.limits, policy);
  const auto phases = phase_bytes(toy.program, toy.plan, {.save_bytes = 100});
  EXPECT_EQ(phases[2].bytes[1], toy.plan.tier_bytes[1] + 100);
  EXPECT_EQ(phases[2].bytes[0], toy.plan.tier_bytes[0]);
}

TEST(Prediction, CountsBuffersBesideAllThatTrainingTouches) {
  TierLimits limits;
  limits.host_bytes = 10 * MiB;
  limits.buffer_bytes = 3 * MiB;
  const std::string text = format_phases(
      {{"loading", {0, 5 * MiB, 0}}, {"training", {0, 4 * MiB, 0}}, {"saving", {0, 1 * MiB, 0}}},
      limits);
  EXPECT_THAT(text, ::testing::ContainsRegex("held at most +0 B +7.00 MiB"));
  EXPECT_THAT(text, ::testing::ContainsRegex("left of the limit +- +3.00 MiB"));
}

TEST(Prediction, TellsPeopleEachPart) {
  const Prediction p = Toy().prediction();
  EXPECT_THAT(format_headline(p), ::testing::AllOf(HasSubstr("tokens/s"), HasSubstr("per GPU"),
                                                   HasSubstr("MFU"), HasSubstr("bound    by ")));
  EXPECT_THAT(format_waterfall(p), ::testing::AllOf(HasSubstr("compute"), HasSubstr("wait for ")));
  EXPECT_THAT(format_resources(p),
              ::testing::AllOf(HasSubstr("each of 4 ranks"), HasSubstr("B/s")));
  EXPECT_THAT(format_savings(p), ::testing::AllOf(HasSubstr("export"), HasSubstr("moments")));
}

TEST(Prediction, IsPartOfThePlansJson) {
  const Toy toy;
  const Prediction p = toy.prediction();
  const auto json = nlohmann::json::parse(plan_to_json(toy.program, toy.plan, p));
  EXPECT_EQ(json["format"], "strata-plan-1");
  EXPECT_EQ(json["prediction"]["format"], "strata-prediction-1");
  EXPECT_EQ(json["prediction"]["step_seconds"], p.simulation.step_seconds);
  EXPECT_EQ(json["prediction"]["drives"].size(), 2u);
  EXPECT_TRUE(json["prediction"]["drives"][0]["life_steps"].is_null());
  EXPECT_EQ(json["prediction"]["touched"]["training"]["cpu_bytes"], toy.plan.tier_bytes[1]);
  EXPECT_TRUE(json["prediction"]["resources"].contains("nvme_write"));
  EXPECT_EQ(plan_to_json(toy.program, toy.plan, p), plan_to_json(toy.program, toy.plan, p));
}

TEST(FormatSeconds, ChoosesAUnitPeopleUse) {
  EXPECT_EQ(format_seconds(0.0000125), "12.5 us");
  EXPECT_EQ(format_seconds(0.413), "413 ms");
  EXPECT_EQ(format_seconds(7.924), "7.92 s");
  EXPECT_EQ(format_seconds(61.7), "61.7 s");
  EXPECT_EQ(format_seconds(600), "10.0 min");
  EXPECT_EQ(format_seconds(3 * 86'400), "3.0 days");
  EXPECT_EQ(format_seconds(10.0 * 365 * 86'400), "10 years");
}

TEST(FormatGrouped, SetsThousandsApart) {
  EXPECT_EQ(format_grouped(999), "999");
  EXPECT_EQ(format_grouped(8270.4), "8,270");
  EXPECT_EQ(format_grouped(1234567), "1,234,567");
}

}  // namespace
}  // namespace strata
