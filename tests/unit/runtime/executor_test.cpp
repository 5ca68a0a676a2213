#include "strata/runtime/executor.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "strata/core/error.hpp"
#include "support/execution_modes.hpp"
#include "support/holding_engine.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/toy_model.hpp"
#include "support/toy_program.hpp"
#include "support/toy_run.hpp"
#include "unit/runtime/toy_checks.hpp"

namespace strata {
namespace {

using testing::expect_same;
using testing::HoldingEngine;
using testing::make_toy_program;
using testing::random_policy;
using testing::roomy_limits;
using testing::rounds;
using testing::run_plainly;
using testing::run_planned;
using testing::sim_disk;
using testing::small_program;
using testing::ToyRunOptions;
using testing::ToyUpdate;
using testing::Trajectory;
using testing::verified_plan;

class FailingModel : public SegmentRunner {
  void run(const Segment&, const SegmentViews&, const StepArgs&, Stream&) override {
    throw Error("the model has failed");
  }
};

std::vector<Plan> random_plans(const Program& program, int count) {
  std::vector<Plan> plans;
  for (int seed = 0; seed < count; ++seed)
    plans.push_back(verified_plan(program, random_policy(static_cast<std::uint64_t>(seed))));
  return plans;
}

Trajectory run_on_sim_disk(const Program& program, const Plan& plan, const ToyRunOptions& options,
                           std::uint64_t seed = 1) {
  auto engine = sim_disk(seed);
  return run_planned(program, plan, engine.get(), options);
}

TEST(Executor, GivesThePlainBitsSeriallyUnderEveryPlacement) {
  for (const int micro_batches : {1, 3}) {
    const Program program = small_program(micro_batches);
    ToyRunOptions options{.steps = 5, .evaluate_every = 3};
    const Trajectory expected = run_plainly(program, options);
    options.executor = {ExecutionMode::serial, 0, Poison::on};
    for (const Plan& plan : random_plans(program, rounds(24, 8)))
      expect_same(expected, run_on_sim_disk(program, plan, options),
                  std::to_string(plan_hash(program, plan)));
  }
}

TEST(Executor, GivesThePlainBitsUnderTwoHundredLegalOrders) {
  const Program program = small_program(2);
  ToyRunOptions options{.steps = 3, .evaluate_every = 2};
  const Trajectory expected = run_plainly(program, options);
  const std::vector<Plan> plans = random_plans(program, rounds(24, 6));
  for (std::size_t seed = 0; seed < static_cast<std::size_t>(rounds(200, 20)); ++seed) {
    options.executor = {ExecutionMode::seeded, seed, seed % 2 == 0 ? Poison::on : Poison::off};
    expect_same(expected, run_on_sim_disk(program, plans[seed % plans.size()], options),
                "order " + std::to_string(seed));
  }
}

TEST(Executor, GivesThePlainBitsOnThreads) {
  const Program program = small_program(2);
  ToyRunOptions options{.steps = 6, .evaluate_every = 4};
  const Trajectory expected = run_plainly(program, options);
  const std::vector<Plan> plans = random_plans(program, rounds(24, 6));
  for (std::size_t i = 0; i < plans.size(); ++i)
    expect_same(expected, run_on_sim_disk(program, plans[i], options, i),
                "placement " + std::to_string(i));
}

// Evaluations so short that many pass before every idle lane has woken: none may take a later step
// for one of them.
TEST(Executor, KeepsLanesInStepThatHaveNothingToDo) {
  const Program program = make_toy_program(
      {.layers = 1, .layer_elements = 64, .embedding_elements = 64, .tokens = 1, .tied = false});
  const ToyRunOptions options{.steps = rounds(60, 20), .evaluate_every = 1, .evaluations = 13};
  const Trajectory expected = run_plainly(program, options);
  for (const Tier tier : {Tier::device, Tier::nvme}) {
    const Plan plan = verified_plan(program, testing::all_on(tier));
    expect_same(expected, run_on_sim_disk(program, plan, options), std::string(tier_name(tier)));
  }
}

TEST(Executor, GivesTheSameBitsWithUpdatesDuringBackward) {
  const Program program = small_program(2);
  ToyRunOptions options{.steps = 6, .max_grad_norm = 0};
  const Trajectory expected = run_plainly(program, options);
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(12, 4)); ++seed) {
    Policy policy = random_policy(seed);
    policy.update_order = UpdateOrder::during_backward;
    options.executor.mode = seed % 2 == 0 ? ExecutionMode::threaded : ExecutionMode::seeded;
    options.executor.seed = seed;
    expect_same(expected, run_on_sim_disk(program, verified_plan(program, policy), options, seed),
                "placement " + std::to_string(seed));
  }
}

// In each mode, after backward and (without clipping) during it.
TEST(Executor, GivesThePlainBitsWhenUpdatesReadTheWeightTheyWrite) {
  const Program program = small_program(2, ToyUpdate::updates_weight);
  ToyRunOptions options{.steps = 5, .evaluate_every = 3};
  for (const UpdateOrder order :
       {UpdateOrder::after_backward, UpdateOrder::deferred, UpdateOrder::during_backward}) {
    options.max_grad_norm = order == UpdateOrder::during_backward ? 0.0f : 0.5f;
    const Trajectory expected = run_plainly(program, options);
    for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(24, 6)); ++seed) {
      Policy policy = random_policy(seed / 3);
      policy.update_order = order;
      options.executor = {static_cast<ExecutionMode>(seed % 3), seed, Poison::on};
      expect_same(expected, run_on_sim_disk(program, verified_plan(program, policy), options, seed),
                  "seed " + std::to_string(seed));
    }
  }
}

TEST(Executor, GivesTheSameBitsOverRealFilesWithEachEngine) {
  const Program program = make_toy_program({});
  ToyRunOptions options{.steps = 5};
  const Trajectory expected = run_plainly(program, options);
  const Plan plan = make_plan(program, roomy_limits(), testing::all_on(Tier::nvme));
  for (const char* name : {"auto", "threads"}) {
    auto engine = make_io_engine(name, {});
    expect_same(expected, run_planned(program, plan, engine.get(), options), name);
  }
}

TEST(Executor, NamesStepOpAndTileWhenAReadFails) {
  const Program program = make_toy_program({});
  const Plan plan = make_plan(program, roomy_limits(), testing::all_on(Tier::nvme));
  for (const ExecutionMode mode :
       {ExecutionMode::serial, ExecutionMode::seeded, ExecutionMode::threaded}) {
    SimOptions options;
    options.faults = {{400, EIO}};
    auto engine = make_sim_engine(options);
    ToyRunOptions run{.steps = 20};
    run.executor.mode = mode;
    try {
      run_planned(program, plan, engine.get(), run);
      FAIL() << "no error";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("step "), std::string::npos) << text;
      EXPECT_NE(text.find("Input/output error"), std::string::npos) << text;
      EXPECT_NE(text.find("tile"), std::string::npos) << text;
    }
  }
}

TEST(Executor, EndsWithoutHangingWhereverAnOperationFails) {
  const Program program = small_program(1);
  const Plan plan = make_plan(program, roomy_limits(), random_policy(1));
  int runs = 0, failures = 0;
  for (std::uint64_t at = 40; at < 450; at += static_cast<std::uint64_t>(rounds(37, 150))) {
    SimOptions options;
    options.seed = at;
    options.latency_us_max = 20;
    options.faults = {{at, EIO}};
    auto engine = make_sim_engine(options);
    ++runs;
    try {
      run_planned(program, plan, engine.get(), {.steps = 15});
    } catch (const Error& error) {
      ++failures;
      EXPECT_NE(std::string(error.what()).find("Input/output error"), std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(failures, runs);  // Each fault lies within the run.
}

// Held transfers end only when they are cancelled: without that this test would wait for ever.
TEST(Executor, CancelsWhatTheDriveHasNotBegunWhenAnOpFails) {
  const Program program = make_toy_program({});
  const Plan plan = verified_plan(program, testing::all_on(Tier::nvme));
  HoldingEngine engine(make_sim_engine({}), 500);
  try {
    run_planned(program, plan, &engine, {.steps = 20});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a write has failed"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(engine.num_cancelled(), 3u);
}

class ExecutorAfterAFailure : public ::testing::TestWithParam<ExecutionMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, ExecutorAfterAFailure, testing::all_modes(), testing::mode_name);

TEST_P(ExecutorAfterAFailure, ThrowsTheSameErrorWhateverIsAskedOfIt) {
  const Program program = make_toy_program({});
  const Plan plan = verified_plan(program, testing::all_on(Tier::host));
  auto device = make_host_device({});
  TierMemory memory(*device, plan.tier_bytes[0], plan.tier_bytes[1]);
  auto kernels = make_ref_kernels();
  FailingModel model;
  testing::ToyOptimizer optimizer;
  Executor executor(
      program, plan,
      {device.get(), &memory, nullptr, kernels.get(), kernels.get(), &model, &optimizer},
      {GetParam()});
  const std::vector<std::int32_t> input(3 * 64);
  StepArgs args;
  args.inputs = {std::as_bytes(std::span(input))};
  const auto error_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string first = error_of([&] {
    executor.submit("train", args);
    executor.wait_result();
  });
  EXPECT_NE(first.find("the model has failed"), std::string::npos) << first;
  EXPECT_EQ(error_of([&] { executor.drain(); }), first);
  EXPECT_EQ(error_of([&] { executor.drain(); }), first);
}

}  // namespace
}  // namespace strata
