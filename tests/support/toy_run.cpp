#include "support/toy_run.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "strata/kernels/kernels.hpp"
#include "strata/runtime/nvme_tiles.hpp"
#include "support/toy_data.hpp"

namespace strata::testing {

ToyRank::ToyRank(const Program& program, const Plan& plan, IoEngine* engine, Communicator* comm,
                 const ExecutorOptions& options, const ToyHardware& hardware)
    : program_(program),
      plan_(plan),
      device_(hardware.device != nullptr ? *hardware.device : *host_),
      memory_(device_, plan.tier_bytes[0], plan.tier_bytes[1]) {
  if (plan.tier_bytes[2] > 0) make_store(*engine);
  state_.emplace(program, plan, device_, memory_, store_.get());
  initialise();
  ExecutorParts parts{&device_,       &memory_, store_.get(), kernels_.get(),
                      kernels_.get(), &model_,  &optimizer_};
  if (hardware.device_kernels != nullptr) parts.device_kernels = hardware.device_kernels;
  if (hardware.model != nullptr) parts.model = hardware.model;
  parts.device_optimizer = hardware.device_optimizer;
  parts.comm = comm;
  parts.sink = this;
  parts.committer = this;
  executor_.emplace(program, plan, parts, options);
}

void ToyRank::make_store(IoEngine& engine) {
  drives_.emplace(engine, plan_.drive_bytes.size());
  StoreSpec spec;
  spec.directories = drives_->paths();
  spec.tiles = NvmeTiles(program_, plan_).tiles();
  store_ = ShardStore::create(engine, spec, {Checksums::on, Verify::reads});
}

void ToyRank::initialise() {
  for (const Shard& shard : program_.shards)
    if (is_toy_state(shard.role))
      for (int tile = 0; tile < program_.num_tiles(shard.id); ++tile) initialise(shard, tile);
}

void ToyRank::initialise(const Shard& shard, int tile) {
  const std::int64_t begin = program_.place_begin(shard.id, program_.place(shard.id, tile));
  const std::int64_t count = program_.tile_count(shard.id, tile);
  state_->write(shard.id, tile, [&](std::span<std::byte> bytes) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (std::int64_t i = 0; i < count; ++i) values[i] = initial_value(program_, shard, begin + i);
  });
}

Trajectory ToyRank::train(const ToyRunOptions& options) {
  std::array<ToyStep, 3> steps;
  Trajectory t;
  checkpoints_ = options.checkpoints;
  for (int step = 0; step < options.steps; ++step) {
    ToyStep& input = steps[static_cast<std::size_t>(step % 3)];
    input.fill(program_, step, options);
    executor_->submit(begin_step(step, checkpoints_), input.args());
    const StepResult result = executor_->wait_result();
    t.losses.push_back(result.loss);
    t.norms.push_back(result.grad_norm);
    for (const double loss : result.micro_batch_losses) t.micro_batch_losses.push_back(loss);
    if (options.evaluate_every > 0 && step % options.evaluate_every == 0)
      evaluate(step, options, t);
  }
  executor_->drain();
  t.weights = weights();
  return t;
}

std::string_view ToyRank::begin_step(int step, const ToyCheckpoints& checkpoints) {
  if (checkpoints.every == 0 || step % checkpoints.every != 0) return "train";
  executor_->drain();
  if (checkpoints.before_saving) checkpoints.before_saving(*this);
  return "train_save";
}

void ToyRank::save(ShardId shard, int tile, std::span<const std::byte> bytes,
                   std::span<const std::byte> weight) {
  if (checkpoints_.on_save) checkpoints_.on_save(shard, tile, bytes, weight);
}

void ToyRank::commit(const StepArgs& args, bool applied) {
  if (checkpoints_.on_commit) checkpoints_.on_commit(*this, args, applied);
}

std::vector<std::byte> ToyRank::tile(ShardId shard, int tile) {
  const auto bytes = state_->read(shard, tile);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> ToyRank::stored_tile(ShardId shard, int tile) {
  const int index = NvmeTiles(program_, plan_).index(shard, tile);
  const std::uint64_t padded = store_->padded_bytes(index);
  const std::unique_ptr<void, decltype(&std::free)> memory(
      std::aligned_alloc(store_->alignment(), padded), &std::free);
  const std::span bytes(static_cast<std::byte*>(memory.get()), padded);
  store_->transfer(IoOp::read, index, bytes);
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(store_->tile(index).bytes)};
}

void ToyRank::evaluate(std::int64_t step, const ToyRunOptions& options, Trajectory& trajectory) {
  ToyStep input;
  input.fill(program_, step, options);
  for (int i = 0; i < options.evaluations; ++i) {
    executor_->submit("eval", input.args());
    trajectory.scores.push_back(executor_->wait_result().loss);
  }
  executor_->drain();
}

std::vector<std::vector<std::byte>> ToyRank::weights() {
  std::vector<std::vector<std::byte>> weights;
  for (const Shard& shard : program_.shards) {
    if (shard.role != Role::weight) continue;
    weights.emplace_back();
    for (int tile = 0; tile < program_.num_tiles(shard.id); ++tile) {
      const auto bytes = state_->read(shard.id, tile);
      weights.back().insert(weights.back().end(), bytes.begin(), bytes.end());
    }
  }
  return weights;
}

Trajectory run_planned(const Program& program, const Plan& plan, IoEngine* engine,
                       const ToyRunOptions& options) {
  return ToyRank(program, plan, engine, nullptr, options.executor).train(options);
}

}  // namespace strata::testing
