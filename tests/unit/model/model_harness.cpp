#include "unit/model/model_harness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace strata::test {
namespace {

float element(const TensorView& flat, std::int64_t i) {
  switch (flat.dtype) {
    case DType::f32:
      return flat.as<float>()[i];
    case DType::bf16:
      return to_float(flat.as<bfloat16>()[i]);
    case DType::f64:
      return static_cast<float>(flat.as<double>()[i]);
    default:
      ensure(false);
      return 0;
  }
}

bool is_number_throughout(const TensorView& flat) {
  for (std::int64_t i = 0; i < flat.count(); ++i) {
    if (std::isnan(element(flat, i))) return false;
  }
  return true;
}

void store(std::span<const float> values, const TensorView& flat) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (flat.dtype == DType::f32) flat.as<float>()[i] = values[i];
    if (flat.dtype == DType::bf16) flat.as<bfloat16>()[i] = to_bfloat16(values[i]);
  }
}

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

ModelHarness::ModelHarness(const LlamaConfig& config, const ComputeShape& shape, Kernels& kernels)
    : shape_(shape), model_(make_llama(config, shape, kernels)) {
  for (const BlockSpec& block : model_->blocks()) {
    weights_.emplace_back(static_cast<std::size_t>(block.count), 0.0f);
  }
}

ModelHarness::Place ModelHarness::find(const std::string& name) const {
  const std::vector<BlockSpec>& blocks = model_->blocks();
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    for (const ParameterSpec& parameter : blocks[block].parameters) {
      if (parameter.name == name) return {block, &parameter};
    }
  }
  ADD_FAILURE() << "the model has no parameter " << name;
  ensure(false);
  return {};
}

void ModelHarness::set_weight(const std::string& name, std::span<const float> values) {
  const Place place = find(name);
  ensure(static_cast<std::int64_t>(values.size()) == place.parameter->count());
  std::ranges::copy(values, weights_[place.block].begin() + place.parameter->offset);
}

std::vector<float> ModelHarness::weight(const std::string& name) const {
  const Place place = find(name);
  const auto begin = weights_[place.block].begin() + place.parameter->offset;
  return {begin, begin + place.parameter->count()};
}

std::vector<float> ModelHarness::gradient(const std::string& name) const {
  const Place place = find(name);
  const auto begin = gradients_[place.block].begin() + place.parameter->offset;
  return {begin, begin + place.parameter->count()};
}

void ModelHarness::train(std::span<const MicroBatch> micro_batches, double loss_scale,
                         const ProgramVariant& variant) {
  Program program;
  Sequence sequence{"train", {}};
  const auto count = static_cast<int>(micro_batches.size());
  model_->declare_state(program, count);
  model_->declare_training(program, sequence, count, variant);
  prepare(program, micro_batches);
  run(program, sequence, loss_scale);
}

void ModelHarness::score(std::span<const MicroBatch> micro_batches, double loss_scale) {
  Program program;
  Sequence sequence{"eval", {}};
  model_->declare_state(program, 0);
  for (int i = 0; i < static_cast<int>(micro_batches.size()); ++i) {
    model_->declare_score(program, sequence, i);
  }
  prepare(program, micro_batches);
  run(program, sequence, loss_scale);
}

void ModelHarness::prepare(const Program& program, std::span<const MicroBatch> micro_batches) {
  shards_.clear();
  for (const Shard& shard : program.shards) {
    shards_.emplace_back(static_cast<std::uint64_t>(shard.bytes()));
    fill(shard, micro_batches);
  }
  gradients_.clear();
  for (const std::vector<float>& weights : weights_) gradients_.emplace_back(weights.size(), 0.0f);
  loss_ = 0;
}

void ModelHarness::fill(const Shard& shard, std::span<const MicroBatch> micro_batches) const {
  const GuardedBuffer& buffer = shards_[shard.id.index()];
  if (shard.role == Role::weight) {
    store(weights_[static_cast<std::size_t>(shard.block)], buffer.flat(shard.dtype));
  }
  if (shard.role == Role::input) {
    const MicroBatch& source = micro_batches[static_cast<std::size_t>(shard.micro_batch)];
    const MicroBatchView view =
        micro_batch_view(buffer.bytes().data(), shape_.tokens_per_micro_batch);
    ensure(static_cast<std::int64_t>(source.tokens.size()) == shape_.tokens_per_micro_batch);
    std::ranges::copy(source.tokens, view.tokens);
    std::ranges::copy(source.labels, view.labels);
    std::ranges::copy(source.document_start, view.document_start);
  }
}

void ModelHarness::run(const Program& program, const Sequence& sequence, double loss_scale) {
  validate(program);
  StepArgs args;
  args.loss_scale = loss_scale;
  for (SegmentId id : sequence.segments) run(program, program.segment(id), args);
  for (const Shard& shard : program.shards) {
    if (shard.role == Role::metric)
      loss_ += *shards_[shard.id.index()].flat(DType::f64).as<double>();
  }
}

void ModelHarness::run(const Program& program, const Segment& segment, const StepArgs& args) {
  const SegmentBuffers buffers = lay_out(program, segment);
  model_->run(segment, {buffers.views, buffers.scratch.bytes()}, args, *stream_);
  check(program, segment, buffers);
  for (std::size_t i = 0; i < segment.uses.size(); ++i) {
    if (segment.uses[i].access != Access::accumulate) continue;
    add_contribution(program.shard(segment.uses[i].shard), buffers.views[i]);
  }
}

SegmentBuffers ModelHarness::lay_out(const Program& program, const Segment& segment) const {
  SegmentBuffers buffers{{}, {}, {}, GuardedBuffer(segment.scratch_bytes)};
  for (const Use& use : segment.uses) {
    const Shard& shard = program.shard(use.shard);
    const GuardedBuffer& value = shards_[use.shard.index()];
    buffers.before.push_back(copy_of(value.bytes()));
    if (use.access == Access::produce) value.poison();
    if (use.access == Access::accumulate) {
      const DType dtype = program.contribution_dtype;
      buffers.contributions.emplace_back(
          static_cast<std::uint64_t>(shard.count * dtype_bytes(dtype)));
      buffers.views.push_back(buffers.contributions.back().flat(dtype));
    } else {
      buffers.views.push_back(value.flat(shard.dtype));
    }
  }
  return buffers;
}

void ModelHarness::check(const Program& program, const Segment& segment,
                         const SegmentBuffers& buffers) const {
  EXPECT_TRUE(buffers.scratch.intact()) << segment.name << " left its scratch";
  for (const GuardedBuffer& contribution : buffers.contributions) {
    EXPECT_TRUE(contribution.intact()) << segment.name << " left a contribution";
  }
  for (std::size_t i = 0; i < segment.uses.size(); ++i) {
    const Shard& shard = program.shard(segment.uses[i].shard);
    const GuardedBuffer& value = shards_[shard.id.index()];
    EXPECT_TRUE(value.intact()) << segment.name << " left " << shard.name;
    if (segment.uses[i].access == Access::read) {
      EXPECT_TRUE(std::ranges::equal(buffers.before[i], value.bytes()))
          << segment.name << " wrote to " << shard.name;
    } else {
      EXPECT_TRUE(is_number_throughout(buffers.views[i]))
          << segment.name << " did not write all of " << shard.name;
    }
  }
}

void ModelHarness::add_contribution(const Shard& gradient, const TensorView& contribution) {
  std::vector<float>& sum = gradients_[static_cast<std::size_t>(gradient.block)];
  for (std::int64_t i = 0; i < contribution.count(); ++i) {
    sum[static_cast<std::size_t>(i)] += element(contribution, i);
  }
}

}  // namespace strata::test
