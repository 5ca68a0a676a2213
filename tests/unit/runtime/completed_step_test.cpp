// What an Executor knows of a step that has completed: when each op ran, and where its time went.

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "strata/core/clock.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/runtime/nvme_tiles.hpp"
#include "strata/runtime/state_access.hpp"
#include "support/drives.hpp"
#include "support/execution_modes.hpp"
#include "support/policies.hpp"
#include "support/toy_model.hpp"
#include "support/toy_program.hpp"

namespace strata {
namespace {

// An executor over a simulated disk, and the arguments of its steps.
class ToyExecutor {
 public:
  ToyExecutor(ExecutionMode mode, Tier tier)
      : program_(testing::make_toy_program({.layers = 1,
                                            .micro_batches = 2,
                                            .layer_elements = 5000,
                                            .embedding_elements = 5000,
                                            .tokens = 8})),
        plan_(make_plan(program_, testing::roomy_limits(1), testing::all_on(tier))),
        memory_(*device_, plan_.tier_bytes[0], plan_.tier_bytes[1]) {
    if (plan_.tier_bytes[2] > 0) make_store();
    clear_state();
    executor_.emplace(program_, plan_,
                      ExecutorParts{device_.get(), &memory_, store_.get(), kernels_.get(),
                                    kernels_.get(), &model_, &optimizer_},
                      ExecutorOptions{mode, 1});
    for (std::size_t i = 0; i < args_.size(); ++i) {
      args_[i].inputs.assign(2, std::as_bytes(std::span(input_)));
      args_[i].index = static_cast<std::int64_t>(i);
    }
  }

  const Schedule& train() const { return *plan_.schedule("train"); }
  Executor& executor() { return *executor_; }
  void submit(std::size_t step) { executor_->submit("train", args_[step]); }
  void step(std::size_t step) {
    submit(step);
    executor_->wait_result();
  }

 private:
  void make_store() {
    SimOptions options;
    options.latency_us_max = 20;
    engine_ = make_sim_engine(options);
    drives_.emplace(*engine_, plan_.drive_bytes.size());
    StoreSpec spec;
    spec.directories = drives_->paths();
    spec.tiles = NvmeTiles(program_, plan_).tiles();
    store_ = ShardStore::create(*engine_, spec, {});
  }
  void clear_state() {
    StateAccess state(program_, plan_, *device_, memory_, store_.get());
    for (const Shard& shard : program_.shards) {
      if (shard.role != Role::weight && shard.role != Role::master && shard.role != Role::moment1 &&
          shard.role != Role::moment2)
        continue;
      for (int tile = 0; tile < program_.num_tiles(shard.id); ++tile)
        state.write(shard.id, tile,
                    [](std::span<std::byte> bytes) { std::ranges::fill(bytes, std::byte{}); });
    }
  }

  const Program program_;
  const Plan plan_;
  std::unique_ptr<Device> device_ = make_host_device({});
  TierMemory memory_;
  std::unique_ptr<IoEngine> engine_;
  std::optional<testing::Drives> drives_;
  std::unique_ptr<ShardStore> store_;
  std::unique_ptr<Kernels> kernels_ = make_ref_kernels();
  testing::ToyModel model_;
  testing::ToyOptimizer optimizer_;
  const std::vector<std::int32_t> input_ = std::vector<std::int32_t>(3 * 8);
  std::array<StepArgs, 12> args_;
  std::optional<Executor> executor_;  // last: its threads use the rest
};

class CompletedStepTest : public ::testing::TestWithParam<ExecutionMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, CompletedStepTest, testing::all_modes(), testing::mode_name);

// Each op ran within the step, after what its edges name, this step's or the one before's.
void expect_legal(const Schedule& schedule, const CompletedStep& step,
                  const CompletedStep* before) {
  ASSERT_EQ(step.ops.size(), schedule.ops.size());
  for (const Op& op : schedule.ops) {
    const OpTime& time = step.ops[op.id.index()];
    EXPECT_EQ(time.op, op.id);
    EXPECT_GE(time.start, 0);
    EXPECT_GE(time.end, time.start);
    for (const Edge& edge : op.after) {
      const CompletedStep* from = edge.steps_back == 0 ? &step : before;
      if (from != nullptr) {
        EXPECT_LE(from->ops[edge.op.index()].end, time.start) << op.id.value;
      }
    }
  }
}

// On lanes that do one op at a time none begins before the one ahead of it ended.
void expect_in_order(const Schedule& schedule, const CompletedStep& step) {
  for (std::size_t lane = 0; lane < num_lanes; ++lane) {
    if (!completes_in_order(static_cast<Lane>(lane))) continue;
    double end = 0;
    for (const OpId op : schedule.lanes[lane]) {
      EXPECT_GE(step.ops[op.index()].start, end);
      end = step.ops[op.index()].end;
    }
  }
}

TEST_P(CompletedStepTest, HasTheTimesOfEveryOpInALegalOrder) {
  for (const Tier tier : {Tier::host, Tier::nvme}) {
    const std::int64_t origin = now_ns();
    ToyExecutor toy(GetParam(), tier);
    std::optional<CompletedStep> before;
    for (std::size_t i = 0; i < 6; ++i) {
      toy.step(i);
      if (i < 2) continue;
      const auto index = static_cast<std::int64_t>(i) - 2;
      const auto step = toy.executor().completed_step("train", index, origin);
      ASSERT_TRUE(step) << i;
      EXPECT_EQ(step->timing.index, index);
      expect_legal(toy.train(), *step, before ? &*before : nullptr);
      expect_in_order(toy.train(), *step);
      before = step;
    }
    const double now = seconds(now_ns() - origin);
    for (const OpTime& time : before->ops) EXPECT_LE(time.end, now);
  }
}

TEST_P(CompletedStepTest, AreTheLastOnesAfterADrain) {
  ToyExecutor toy(GetParam(), Tier::nvme);
  for (std::size_t i = 0; i < 6; ++i) toy.step(i);
  toy.executor().drain();
  EXPECT_FALSE(toy.executor().completed_step("train", 1, 0));
  for (std::int64_t index = 2; index < 6; ++index)
    EXPECT_TRUE(toy.executor().completed_step("train", index, 0)) << index;
  EXPECT_FALSE(toy.executor().completed_step("train", 6, 0));
  EXPECT_FALSE(toy.executor().completed_step("eval", 5, 0));
}

TEST_P(CompletedStepTest, IsNotTheOneThatStillRuns) {
  ToyExecutor toy(GetParam(), Tier::host);
  EXPECT_FALSE(toy.executor().completed_step("train", 0, 0));
  toy.submit(0);
  EXPECT_FALSE(toy.executor().completed_step("train", 0, 0));
  toy.executor().wait_result();
  toy.executor().drain();
  EXPECT_TRUE(toy.executor().completed_step("train", 0, 0));
}

TEST_P(CompletedStepTest, IsBusyOnALaneForAsLongAsItsOpsRan) {
  ToyExecutor toy(GetParam(), Tier::host);
  toy.step(0);
  toy.executor().drain();
  const auto step = toy.executor().completed_step("train", 0, 0);
  ASSERT_TRUE(step);
  std::array<double, num_lanes> busy{};
  for (const Op& op : toy.train().ops)
    busy[static_cast<std::size_t>(op.lane)] +=
        step->ops[op.id.index()].end - step->ops[op.id.index()].start;
  for (std::size_t lane = 0; lane < num_lanes; ++lane)
    EXPECT_NEAR(busy[lane], seconds(step->timing.busy_ns[lane]), 1e-6) << lane;
}

}  // namespace
}  // namespace strata
