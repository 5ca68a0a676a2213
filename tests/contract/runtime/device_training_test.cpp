// Plans walked on a CUDA device, with its own streams, events, copies, sums and squares, give the
// bits of the plain run under random placements and schedules. The toy's own arithmetic is the
// host's, between copies.

#include <gtest/gtest.h>

#include "contract/runtime/training_device.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/sanitizers.hpp"
#include "support/staged_toy.hpp"
#include "support/toy_program.hpp"
#include "support/toy_run.hpp"

namespace strata::testing {
namespace {

class DeviceTraining : public ::testing::TestWithParam<ExecutionMode> {
 protected:
  static Trajectory train(const Program& program, const Plan& plan, IoEngine& disk,
                          const ToyRunOptions& options) {
    const auto on = make_training_device(options.executor.seed);
    ToyModel host_model;
    ToyOptimizer host_optimizer;
    StagedModel model(on->device(), host_model);
    StagedOptimizer optimizer(on->device(), host_optimizer);
    ToyRank rank(program, plan, &disk, nullptr, options.executor,
                 {&on->device(), &on->kernels(), &model, &optimizer});
    return rank.train(options);
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, DeviceTraining, all_modes(), mode_name);

Program toy_program(std::uint64_t seed) {
  return make_toy_program(
      {.layers = 2,
       .micro_batches = 2,
       .layer_elements = 5000,
       .embedding_elements = 9000,
       .tokens = 32,
       .update = seed % 3 == 0 ? ToyUpdate::updates_weight : ToyUpdate::produces_weight});
}

TEST_P(DeviceTraining, GivesThePlainBitsUnderEveryPlacementAndSchedule) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(16, 4)); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Program program = toy_program(seed);
    const Policy policy = random_schedule(seed);
    const Plan plan = make_plan(program, roomy_limits(), policy);
    ASSERT_TRUE(verify(program, plan).empty());
    ToyRunOptions options{.steps = 3, .evaluate_every = 2};
    if (policy.update_order == UpdateOrder::during_backward) options.max_grad_norm = 0;
    const Trajectory expected = run_plainly(program, options);
    options.executor = {GetParam(), seed, seed % 2 == 0 ? Poison::on : Poison::off};
    const auto disk = make_sim_engine({.seed = seed});
    EXPECT_TRUE(train(program, plan, *disk, options) == expected);
  }
}

}  // namespace
}  // namespace strata::testing
