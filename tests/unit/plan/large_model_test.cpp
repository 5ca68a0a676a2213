// A model of 70 billion parameters on eight ranks, planned where none of it would fit.

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include "strata/kernels/kernels.hpp"
#include "strata/model/model.hpp"
#include "strata/optim/optimizer.hpp"
#include "strata/plan/plan.hpp"
#include "support/llama_70b.hpp"
#include "support/policies.hpp"

namespace strata {
namespace {

constexpr int world = 8;

struct LargeRun {
  int micro_batches = 1;
  std::int64_t tile_elements = 4 << 20;
  int zero_stage = 3;
};

Program declare(const LargeRun& run) {
  const std::unique_ptr<Kernels> kernels = make_ref_kernels();
  const std::unique_ptr<Model> model =
      make_llama(testing::llama_70b(), {.tokens_per_micro_batch = 4096}, *kernels);
  Program program;
  program.world = world;
  program.rank = 5;
  program.zero_stage = run.zero_stage;
  program.tile_elements = run.tile_elements;
  model->declare_state(program, run.micro_batches);
  Sequence train{"train", {}};
  model->declare_training(program, train, run.micro_batches, {});
  Optimizer::declare({}, program, train);
  program.sequences.push_back(std::move(train));
  return program;
}

// Runs `work` and tells how long it took; no test depends on that.
template <typename Work>
auto timed(const std::string& what, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  auto result = work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::cout << "  " << what << " " << seconds.count() << " s\n";
  return result;
}

Plan plan_and_verify(const LargeRun& run, const Policy& policy) {
  const Program program = timed("declare", [&] { return declare(run); });
  const Plan plan =
      timed("plan", [&] { return make_plan(program, testing::roomy_limits(), policy); });
  const auto found = timed("verify", [&] { return verify(program, plan); });
  EXPECT_TRUE(found.empty()) << found.front().what;
  std::cout << "  " << plan.schedules[0].ops.size() << " ops\n";
  return plan;
}

Policy states_on(Tier tier) {
  Policy policy = testing::all_on(Tier::host);
  for (const Role role : {Role::master, Role::moment1, Role::moment2})
    policy.fractions[static_cast<std::size_t>(role)] = {0, tier == Tier::host ? 1.0 : 0.0,
                                                        tier == Tier::nvme ? 1.0 : 0.0};
  return policy;
}

std::uint64_t home_bytes(const Plan& plan, Role role) {
  for (const Usage& usage : plan.usage)
    if (usage.is_home && usage.role == role)
      return usage.bytes[0] + usage.bytes[1] + usage.bytes[2];
  return 0;
}

// 70.55e9 parameters; a slice's padding is less than 0.1% of it.
TEST(PlanOf70B, HoldsAnEighthOfItsStateInRamOfEachRank) {
  const Plan plan = plan_and_verify({}, states_on(Tier::host));
  const double parameters = 70.55e9 / world;
  EXPECT_NEAR(static_cast<double>(home_bytes(plan, Role::master)), 4 * parameters,
              4e-3 * parameters);
  EXPECT_NEAR(static_cast<double>(home_bytes(plan, Role::weight)), 2 * parameters,
              2e-3 * parameters);
}

TEST(PlanOf70B, VerifiesWithStatesOnNvmeAndLargeTiles) {
  plan_and_verify({.tile_elements = 16 << 20}, states_on(Tier::nvme));
}

TEST(PlanOf70B, VerifiesWithStatesOnNvmeAndSmallTiles) {
  plan_and_verify({}, states_on(Tier::nvme));
}

TEST(PlanOf70B, VerifiesWithSavesAndCommits) {
  Policy policy = states_on(Tier::nvme);
  policy.background_saves = policy.versioned_state = true;
  plan_and_verify({}, policy);
}

TEST(PlanOf70B, VerifiesWithAccumulation) {
  plan_and_verify({.micro_batches = 8, .tile_elements = 16 << 20}, states_on(Tier::host));
}

}  // namespace
}  // namespace strata
