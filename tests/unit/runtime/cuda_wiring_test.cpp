// Plans walked on a CUDA device over the fake runtime, whose work runs later than it is issued, in
// any order that the executor's waits allow: the bits of the plain run, no wait too few, none on a
// lane's thread, and an end with one message whichever call fails.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strata/core/error.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_program.hpp"
#include "support/toy_ranks.hpp"
#include "unit/runtime/cuda_toy.hpp"
#include "unit/runtime/toy_checks.hpp"

namespace strata {
namespace {

using testing::all_on;
using testing::CudaToy;
using testing::expect_same;
using testing::FakeCudaOptions;
using ::testing::IsEmpty;
using testing::make_toy_program;
using testing::random_schedule;
using testing::rounds;
using testing::run_plainly;
using testing::sim_disk;
using testing::small_program;
using testing::ToyRanks;
using testing::ToyRunOptions;
using testing::ToyUpdate;
using testing::Trajectory;
using testing::verified_plan;

// Clipping where the order of updates allows it.
ToyRunOptions options_for(const Policy& policy) {
  ToyRunOptions options{.steps = 3, .evaluate_every = 2};
  if (policy.update_order == UpdateOrder::during_backward) options.max_grad_norm = 0;
  return options;
}

class CudaWiring : public ::testing::TestWithParam<ExecutionMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, CudaWiring, testing::all_modes(), testing::mode_name);

TEST_P(CudaWiring, GivesThePlainBitsUnderEveryPlacementAndSchedule) {
  for (const ToyUpdate update : {ToyUpdate::produces_weight, ToyUpdate::updates_weight}) {
    const Program program = small_program(2, update);
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(40, 8)); ++seed) {
      const Policy policy = random_schedule(seed);
      ToyRunOptions options = options_for(policy);
      const Trajectory expected = run_plainly(program, options);
      options.executor = {GetParam(), seed, seed % 2 == 0 ? Poison::on : Poison::off};
      const auto disk = sim_disk(seed);
      CudaToy toy({.seed = seed});
      expect_same(expected, toy.train(program, verified_plan(program, policy), disk.get(), options),
                  "seed " + std::to_string(seed));
      EXPECT_THAT(toy.fake().complaints(), IsEmpty()) << "seed " << seed;
    }
  }
}

TEST_P(CudaWiring, GivesBackAllThatItTakes) {
  const Program program = small_program(1);
  CudaToy toy({});
  const std::vector<std::string> before = toy.fake().leaks();  // the device's own
  ToyRunOptions options{.steps = 2};
  options.executor.mode = GetParam();
  toy.train(program, verified_plan(program, all_on(Tier::host)), nullptr, options);
  EXPECT_EQ(toy.fake().leaks(), before);
}

// More ops in flight than a lane keeps events for.
TEST_P(CudaWiring, GivesThePlainBitsOnLanesOfManyOps) {
  const Program program = make_toy_program({.layers = 14, .tokens = 16, .tile_elements = 4096});
  ToyRunOptions options{.steps = 2, .evaluate_every = 1};
  const Trajectory expected = run_plainly(program, options);
  options.executor = {GetParam(), 3, Poison::off};
  for (const Tier tier : {Tier::device, Tier::host}) {
    CudaToy toy({.seed = 9});
    const Plan plan = verified_plan(program, all_on(tier));
    const auto& lanes = plan.schedule("train")->lanes;
    EXPECT_GT(std::ranges::max(lanes, {}, &std::vector<OpId>::size).size(), 64u);
    expect_same(expected, toy.train(program, plan, nullptr, options), std::string(tier_name(tier)));
    EXPECT_THAT(toy.fake().complaints(), IsEmpty());
  }
}

// What the host has to carry itself among ranks waits for the streams, and they for it.
TEST_P(CudaWiring, GivesThePlainBitsToRanks) {
  if (GetParam() == ExecutionMode::serial) GTEST_SKIP() << "collectives need lanes";
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(8, 2)); ++seed) {
    ToyRanks ranks({.layers = 2,
                    .layer_elements = 9000,
                    .embedding_elements = 9000,
                    .tokens = 16,
                    .world = 2,
                    .zero_stage = 1 + static_cast<int>(seed % 3)},
                   testing::random_policy(seed));
    std::vector<std::unique_ptr<CudaToy>> toys;
    for (std::uint64_t rank = 0; rank < 2; ++rank)
      toys.push_back(std::make_unique<CudaToy>(FakeCudaOptions{.seed = 2 * seed + rank}));
    ranks.set_hardware([&](int rank) { return toys[static_cast<std::size_t>(rank)]->hardware(); });
    ToyRunOptions options{.steps = 3};
    const Trajectory expected = ranks.plainly(options);
    options.executor = {GetParam(), seed, Poison::on};
    const auto disk = sim_disk(seed);
    const testing::RanksRun run = ranks.train(disk.get(), options);
    expect_same(expected, ranks.together(run), "seed " + std::to_string(seed));
    for (const auto& toy : toys) EXPECT_THAT(toy->fake().complaints(), IsEmpty());
  }
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// A run whose fake differs in what is told; nothing: it went well.
struct FaultyRun {
  std::string error;
  std::vector<std::string> complaints, leaks;
  Trajectory trajectory;
  std::uint64_t num_calls = 0, num_waits = 0, num_host_waits = 0;
  bool dropped_wait_mattered = false;
};

FaultyRun run_faulty(const Program& program, const Plan& plan, const FakeCudaOptions& fake,
                     const ExecutorOptions& executor) {
  FaultyRun run;
  const auto disk = sim_disk(1);
  std::optional<CudaToy> toy;
  try {
    toy.emplace(fake);
    run.trajectory = toy->train(program, plan, disk.get(),
                                {.steps = 2, .evaluate_every = 1, .executor = executor});
  } catch (const Error& error) {
    run.error = error.what();
  }
  if (!toy) return run;
  run.complaints = toy->fake().complaints();
  run.leaks = toy->fake().leaks();
  run.num_calls = toy->fake().num_calls();
  run.num_waits = toy->fake().num_waits();
  run.num_host_waits = toy->fake().num_host_waits();
  run.dropped_wait_mattered = toy->fake().dropped_wait_mattered();
  return run;
}

Plan mixed_plan(const Program& program) {
  Policy policy = random_schedule(4);
  policy.update_order = UpdateOrder::deferred;
  policy.streamed_updates = 0.5;
  return verified_plan(program, policy);
}

TEST_P(CudaWiring, EndsWithOneMessageWhicheverCallFails) {
  const Program program = small_program(1);
  const Plan plan = mixed_plan(program);
  const ExecutorOptions executor{GetParam(), 5};
  const FaultyRun whole = run_faulty(program, plan, {}, executor);
  ASSERT_EQ(whole.error, "");
  const std::vector<std::string> own_leaks = CudaToy({}).fake().leaks();  // the device's clock
  const auto samples = static_cast<std::uint64_t>(rounds(80, 15));
  std::size_t ended = 0, named = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const FaultyRun run =
        run_faulty(program, plan, {.failing_call = i * whole.num_calls / samples}, executor);
    EXPECT_THAT(run.complaints, IsEmpty()) << run.error;
    EXPECT_EQ(run.leaks, run.num_calls > 0 ? own_leaks : run.leaks) << run.error;
    if (run.error.empty()) continue;
    ++ended;
    EXPECT_EQ(occurrences(run.error, "cudaErrorLaunchFailure (719)"), 1u) << run.error;
    EXPECT_EQ(occurrences(run.error, "cuda"), occurrences(run.error, "cudaError") + 1) << run.error;
    named += run.error.starts_with("step ") ? 1u : 0u;
  }
  EXPECT_GT(ended, samples / 2) << "only what gives back may fail in silence";
  EXPECT_GT(named, samples / 4) << "many calls are those of steps";
}

// Mutations: a wait that is left out is found, unless something else has ordered the work.
TEST(CudaWaits, AreAllNeededOrImpliedByOthers) {
  const Program program = small_program(1);
  const Plan plan = mixed_plan(program);
  const ExecutorOptions executor{ExecutionMode::seeded, 7};
  const FaultyRun whole = run_faulty(program, plan, {}, executor);
  ASSERT_THAT(whole.complaints, IsEmpty());
  ASSERT_GT(whole.num_waits, 20u);
  const auto samples = std::min(whole.num_waits, static_cast<std::uint64_t>(rounds(120, 20)));
  std::size_t needed = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const FaultyRun run =
        run_faulty(program, plan, {.dropped_wait = i * whole.num_waits / samples}, executor);
    EXPECT_EQ(run.complaints.empty(), !run.dropped_wait_mattered) << "wait " << i;
    if (run.complaints.empty())
      expect_same(whole.trajectory, run.trajectory, "without wait " + std::to_string(i));
    needed += run.dropped_wait_mattered ? 1u : 0u;
  }
  EXPECT_GT(needed, samples / 4);
}

TEST(CudaWaits, OfTheHostAreMissedWhenTheyAreLeftOut) {
  const Program program = small_program(1);
  const Plan plan = mixed_plan(program);
  const ExecutorOptions executor{ExecutionMode::seeded, 7};
  const FaultyRun whole = run_faulty(program, plan, {}, executor);
  const auto samples = std::min(whole.num_host_waits, static_cast<std::uint64_t>(rounds(120, 20)));
  std::size_t found = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const FaultyRun run = run_faulty(
        program, plan, {.dropped_host_wait = i * whole.num_host_waits / samples}, executor);
    found += run.complaints.empty() ? 0u : 1u;
    if (run.complaints.empty() && run.error.empty())
      expect_same(whole.trajectory, run.trajectory, "without wait " + std::to_string(i));
  }
  EXPECT_GT(found, samples / 10);
}

// Each op's time is its stream's own: within a lane they follow one another.
TEST(CudaTimes, FollowOneAnotherWithinALane) {
  const Program program = small_program(2);
  const Plan plan = verified_plan(program, all_on(Tier::host));
  CudaToy toy({});
  testing::ToyRank rank(program, plan, nullptr, nullptr, {}, toy.hardware());
  rank.train({.steps = 3, .evaluate_every = 0});
  const auto step = rank.executor().completed_step("train", 2, 0);
  ASSERT_TRUE(step);
  const Schedule& schedule = *plan.schedule("train");
  for (const Lane lane : {Lane::h2d, Lane::compute, Lane::d2h}) {
    double free = 0;
    for (const OpId id : schedule.lanes[static_cast<std::size_t>(lane)]) {
      const OpTime& time = step->ops[id.index()];
      EXPECT_GE(time.start, free - 1e-6) << lane_name(lane);
      EXPECT_GE(time.end, time.start - 1e-6);
      free = time.end;
    }
  }
  EXPECT_GT(step->timing.busy_ns[static_cast<std::size_t>(Lane::compute)], 0);
}

TEST(CudaRanges, NameTheSegmentsForAProfiler) {
  const Program program = small_program(1);
  CudaToy toy({});
  toy.train(program, verified_plan(program, all_on(Tier::device)), nullptr, {.steps = 1});
  for (const Segment& segment : program.segments) {
    if (segment.kind != SegmentKind::forward && segment.kind != SegmentKind::backward) continue;
    EXPECT_THAT(toy.fake().ranges(), ::testing::Contains(segment.name));
  }
}

}  // namespace
}  // namespace strata
