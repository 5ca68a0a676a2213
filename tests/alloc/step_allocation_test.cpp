// Nothing is allocated during a step: counted over the whole process, every thread and library.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "alloc/allocation_counter.hpp"
#include "alloc/uncounted_kernels.hpp"
#include "sim/tiny_training.hpp"

namespace strata {
namespace {

using testing::allocation_count;
using testing::AllocationCount;
using testing::place_randomly;
using testing::tiny_config;
using testing::tiny_files;
using testing::Uncounted;
using testing::UncountedKernels;

constexpr std::size_t num_steps = 10;

// Inputs and arguments of every step, made beforehand.
struct PreparedSteps {
  std::array<std::vector<std::vector<std::int32_t>>, num_steps> inputs;
  std::array<StepArgs, num_steps> args;

  explicit PreparedSteps(const RunConfig& config) {
    std::vector<TokenShard> shards;
    shards.emplace_back(config.dataset.front());
    const Batches batches(std::move(shards), {.sequence_length = config.cutoff_len});
    const auto micro_batches = static_cast<std::size_t>(config.gradient_accumulation_steps);
    for (std::size_t step = 0; step < num_steps; ++step) {
      inputs[step].assign(micro_batches, std::vector<std::int32_t>(static_cast<std::size_t>(
                                             3 * batches.tokens_per_micro_batch())));
      for (std::size_t i = 0; i < micro_batches; ++i) {
        batches.fill(static_cast<std::int64_t>(step * micro_batches + i), inputs[step][i]);
        args[step].inputs.push_back(std::as_bytes(std::span(inputs[step][i])));
      }
      args[step].index = static_cast<std::int64_t>(step);
      args[step].loss_scale = 1.0 / 64;
      args[step].hyper = {static_cast<std::int64_t>(step + 1), 1e-3f, 0.5f};
    }
  }
};

RunConfig placed_config(std::uint64_t placement) {
  RunConfig config = tiny_config(tiny_files());
  place_randomly(config, placement);
  config.compute_threads = 1;
  config.update_threads = 1;
  config.evaluate = false;
  config.output_dir = testing::fresh_folder("alloc");
  config.offload.nvme_paths = {config.output_dir.string()};
  return config;
}

// The same run with a model and an optimizer whose products are not counted.
PlannedRun with_uncounted_kernels(const RunConfig& config, PlannedRun run) {
  run.device_kernels = std::make_unique<UncountedKernels>(std::move(run.device_kernels));
  run.host_kernels = std::make_unique<UncountedKernels>(std::move(run.host_kernels));
  const ComputeShape shape{DType::bf16, config.cutoff_len, 0};
  run.model = make_llama(llama_config(read_hf_config(config.model_name_or_path)), shape,
                         *run.device_kernels);
  const std::vector<std::vector<DecayRange>> no_decay(run.model->blocks().size());
  run.optimizer =
      std::make_unique<Optimizer>(optimizer_config(config), no_decay, *run.host_kernels);
  return run;
}

// What was allocated in each step, up to its result; updates run on into the next step.
std::array<AllocationCount, num_steps> allocations_of_steps(const RunConfig& config, PlannedRun run,
                                                            const ExecutorOptions& options) {
  const PreparedSteps steps(config);
  Session session(config, std::move(run), {options});
  std::array<AllocationCount, num_steps> counts;
  for (std::size_t step = 0; step < num_steps; ++step) {
    const AllocationCount before = allocation_count();
    session.executor().submit("train", steps.args[step]);
    const bool applied = session.executor().wait_result().applied;
    const AllocationCount after = allocation_count();
    counts[step] = {after.allocations - before.allocations, after.live_bytes - before.live_bytes};
    EXPECT_TRUE(applied);
    if (step == 0) session.executor().drain();  // its updates belong to it
  }
  session.executor().drain();
  return counts;
}

std::int64_t total(std::span<const AllocationCount> steps) {
  std::int64_t sum = 0;
  for (const AllocationCount& step : steps) sum += step.allocations;
  return sum;
}

TEST(AllocationCounter, SeesWhatIsAllocatedAndGivenBack) {
  const AllocationCount before = allocation_count();
  auto memory = std::make_unique<std::byte[]>(1000);
  const AllocationCount held = allocation_count();
  EXPECT_EQ(held.allocations - before.allocations, 1);
  EXPECT_GE(held.live_bytes - before.live_bytes, 1000);
  memory.reset();
  EXPECT_EQ(allocation_count().live_bytes, before.live_bytes);
}

TEST(AllocationCounter, LeavesOutWhatItIsToldTo) {
  const AllocationCount before = allocation_count();
  {
    const Uncounted pause;
    std::make_unique<std::byte[]>(1000);
  }
  EXPECT_EQ(allocation_count().allocations, before.allocations);
}

// Executor, I/O, model and optimizer: everything but the products.
TEST(Step, AllocatesNothingAfterTheFirst) {
  for (const ExecutionMode mode : {ExecutionMode::threaded, ExecutionMode::serial})
    for (const std::uint64_t placement : {3, 8, 13}) {
      const RunConfig config = placed_config(placement);
      const auto counts = allocations_of_steps(
          config, with_uncounted_kernels(config, plan_run(config, Purpose::train)), {mode});
      EXPECT_EQ(total(std::span(counts).subspan(1)), 0) << "placement " << placement;
    }
}

// However the optimizer keeps its state.
TEST(Step, AllocatesNothingAfterTheFirstForSmallState) {
  for (const UpdateRule rule : {UpdateRule::adamw, UpdateRule::lion})
    for (const DType moments : {DType::f32, DType::bf16, DType::q8}) {
      RunConfig config = placed_config(3);
      config.optim = rule;
      config.optimizer_master = MasterFormat::split;
      config.optimizer_moments = moments;
      const auto counts = allocations_of_steps(
          config, with_uncounted_kernels(config, plan_run(config, Purpose::train)), {});
      EXPECT_EQ(total(std::span(counts).subspan(1)), 0)
          << update_rule_name(rule) << " " << dtype_name(moments);
    }
}

// oneDNN allocates and frees a few small buffers inside each product; what is held must not grow.
TEST(Step, HoldsNoMoreMemoryOnceItsProductsAreCompiled) {
  for (const std::uint64_t placement : {3, 8, 13}) {
    const RunConfig config = placed_config(placement);
    const auto counts = allocations_of_steps(config, plan_run(config, Purpose::train), {});
    constexpr std::size_t warm = 2;
    std::int64_t growth = 0;
    for (const AllocationCount& step : std::span(counts).subspan(warm)) growth += step.live_bytes;
    const std::int64_t per_step =
        total(std::span(counts).subspan(warm)) / static_cast<std::int64_t>(num_steps - warm);
    std::printf("  placement %d: %d allocations a step\n", static_cast<int>(placement),
                static_cast<int>(per_step));
    RecordProperty("allocations_per_step", std::to_string(per_step));
    EXPECT_LE(growth, 0) << "placement " << placement;
  }
}

}  // namespace
}  // namespace strata
