#include "strata/runtime/executor.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "strata/core/error.hpp"
#include "support/policies.hpp"
#include "support/toy_program.hpp"
#include "support/toy_run.hpp"

namespace strata {
namespace {

using testing::make_toy_program;
using testing::random_policy;
using testing::roomy_limits;
using testing::run_plainly;
using testing::run_planned;
using testing::ToyRunOptions;
using testing::ToyShape;
using testing::Trajectory;

void expect_same(const Trajectory& expected, const Trajectory& got, const std::string& what) {
  EXPECT_EQ(expected.losses, got.losses) << what;
  EXPECT_EQ(expected.norms, got.norms) << what;
  EXPECT_EQ(expected.scores, got.scores) << what;
  EXPECT_TRUE(expected.weights == got.weights) << what << ": weights differ";
}

std::unique_ptr<SimEngine> sim_disk(std::uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.latency_us_max = 30;
  options.short_transfer_probability = 0.05;
  return make_sim_engine(options);
}

Trajectory planned(const Program& program, const Policy& policy, const ToyRunOptions& options, std::uint64_t seed = 1) {
  const Plan plan = make_plan(program, roomy_limits(), policy);
  EXPECT_TRUE(verify(program, plan).empty());
  auto engine = sim_disk(seed);
  return run_planned(program, plan, engine.get(), options);
}

TEST(Executor, GivesThePlainBitsSeriallyUnderEveryPlacement) {
  for (const int micro_batches : {1, 3}) {
    const Program program = make_toy_program({.micro_batches = micro_batches});
    ToyRunOptions options{.steps = 6};
    const Trajectory expected = run_plainly(program, options);
    options.executor = {ExecutionMode::serial, 0, Poison::on};
    for (std::uint64_t seed = 0; seed < 24; ++seed)
      expect_same(expected, planned(program, random_policy(seed), options), "placement " + std::to_string(seed));
  }
}

TEST(Executor, GivesThePlainBitsUnderTwoHundredLegalOrders) {
  const Program program = make_toy_program({.layers = 3, .micro_batches = 2});
  ToyRunOptions options{.steps = 4, .evaluate_every = 3};
  const Trajectory expected = run_plainly(program, options);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    options.executor = {ExecutionMode::seeded, seed, seed % 2 == 0 ? Poison::on : Poison::off};
    expect_same(expected, planned(program, random_policy(seed % 24), options), "order " + std::to_string(seed));
  }
}

TEST(Executor, GivesThePlainBitsOnThreads) {
  const Program program = make_toy_program({.layers = 3, .micro_batches = 2});
  ToyRunOptions options{.steps = 20};
  const Trajectory expected = run_plainly(program, options);
  for (std::uint64_t seed = 0; seed < 24; ++seed)
    expect_same(expected, planned(program, random_policy(seed), options, seed), "placement " + std::to_string(seed));
}

TEST(Executor, GivesTheSameBitsWithUpdatesDuringBackward) {
  const Program program = make_toy_program({.layers = 3, .micro_batches = 2});
  ToyRunOptions options{.steps = 6, .max_grad_norm = 0};
  const Trajectory expected = run_plainly(program, options);
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Policy policy = random_policy(seed);
    policy.update_order = UpdateOrder::during_backward;
    options.executor.mode = seed % 2 == 0 ? ExecutionMode::threaded : ExecutionMode::seeded;
    options.executor.seed = seed;
    expect_same(expected, planned(program, policy, options, seed), "placement " + std::to_string(seed));
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
  for (const ExecutionMode mode : {ExecutionMode::serial, ExecutionMode::seeded, ExecutionMode::threaded}) {
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
  const Program program = make_toy_program({.layers = 2});
  const Plan plan = make_plan(program, roomy_limits(), random_policy(1));
  for (std::uint64_t at = 40; at < 600; at += 37) {
    SimOptions options;
    options.seed = at;
    options.latency_us_max = 50;
    options.faults = {{at, EIO}};
    auto engine = make_sim_engine(options);
    try {
      run_planned(program, plan, engine.get(), {.steps = 30});
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("Input/output error"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace strata
