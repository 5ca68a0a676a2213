#include "golden/optim/gradient_model.hpp"

#include <algorithm>
#include <cstring>

namespace strata::testing {
namespace {

Shard shard_of(Role role, int block, DType dtype, std::int64_t count) {
  Shard shard;
  shard.role = role;
  shard.block = block;
  shard.dtype = dtype;
  shard.count = count;
  shard.name = std::string(role_name(role)) + "/" + std::to_string(block);
  return shard;
}

Program make_program() {
  Program program;
  program.tile_elements = norm_chunk_elements;
  program.contribution_dtype = DType::f32;
  program.blocks = {"decayed", "plain"};
  Segment loss;
  loss.kind = SegmentKind::loss;
  loss.block = 0;
  loss.micro_batch = 0;
  loss.name = "loss";
  for (const auto& [block, count] :
       {std::pair{0, decayed_elements}, std::pair{1, plain_elements}}) {
    loss.uses.push_back(
        {program.add(shard_of(Role::weight, block, DType::f32, count)), Access::read});
    loss.uses.push_back(
        {program.add(shard_of(Role::gradient, block, DType::f32, count)), Access::accumulate});
  }
  Shard metric = shard_of(Role::metric, 0, DType::f64, 1);
  metric.micro_batch = 0;
  loss.uses.push_back({program.add(metric), Access::produce});
  Sequence train{"train", {program.add(loss)}};
  Optimizer::declare({}, program, train);
  program.sequences.push_back(train);
  return program;
}

void fill(const TensorView& out, std::uint32_t stream, std::int64_t first, float size) {
  for (std::int64_t i = 0; i < out.count(); ++i)
    out.as<float>()[i] = counter_value(stream, static_cast<std::uint32_t>(first + i)) * size;
}

}  // namespace

float counter_value(std::uint32_t stream, std::uint32_t counter) {
  std::uint32_t x = counter + stream * 0x9E3779B9u;
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  x ^= x >> 16;
  return static_cast<float>(x >> 8) * 0x1.0p-24f - 0.5f;
}

void GradientModel::run(const Segment&, const SegmentViews& views, const StepArgs& args, Stream&) {
  const auto stream = static_cast<std::uint32_t>(args.index + 1);
  fill(views.uses[1], stream, 0, size_);
  fill(views.uses[3], stream, decayed_elements, size_);
  *views.uses[4].as<double>() = 0;
}

GradientRun::GradientRun(const OptimizerConfig& config, float gradient_size,
                         std::unique_ptr<Kernels> kernels)
    : kernels_(std::move(kernels)),
      model_(gradient_size),
      optimizer_(config, {{{0, decayed_elements}}, {}}, *kernels_),
      program_(make_program()),
      plan_(make_plan(program_, {}, {})),
      device_(make_host_device({})),
      memory_(*device_, plan_.tier_bytes[0], plan_.tier_bytes[1]),
      state_(program_, plan_, *device_, memory_, nullptr),
      executor_(
          program_, plan_,
          {device_.get(), &memory_, nullptr, kernels_.get(), kernels_.get(), &model_, &optimizer_},
          {ExecutionMode::serial}) {
  initialise();
}

void GradientRun::initialise() {
  for (const Shard& shard : program_.shards) {
    if (shard.role != Role::master && shard.role != Role::weight) continue;
    const std::int64_t first = shard.block == 0 ? 0 : decayed_elements;
    for (int tile = 0; tile < program_.num_tiles(shard.id); ++tile)
      state_.write(shard.id, tile, [&](std::span<std::byte> bytes) {
        fill({bytes.data(), DType::f32, {program_.tile_count(shard.id, tile)}}, 0,
             first + program_.tile_begin(shard.id, tile), 1);
      });
  }
}

StepResult GradientRun::step(const UpdateHyper& hyper) {
  args_.index = hyper.step - 1;
  args_.hyper = hyper;
  executor_.submit("train", args_);
  const StepResult result = executor_.wait_result();
  executor_.drain();
  return result;
}

std::vector<float> GradientRun::read(Role role, int block) {
  const ShardId shard = program_.find(role, block);
  std::vector<float> values;
  for (int tile = 0; tile < program_.num_tiles(shard); ++tile) {
    const auto bytes = state_.read(shard, tile);
    const auto* first = reinterpret_cast<const float*>(bytes.data());
    values.insert(values.end(), first, first + program_.tile_count(shard, tile));
  }
  return values;
}

}  // namespace strata::testing
