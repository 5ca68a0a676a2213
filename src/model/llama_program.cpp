#include "model/llama_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

DType gradient_dtype(const LlamaDeclaration& model, int block, int micro_batches) {
  const bool is_tied_embedding = block == 0 && model.head_weight == HeadWeight::tied;
  const int contributions = micro_batches * (is_tied_embedding ? 2 : 1);
  return contributions == 1 ? model.dims.dtype : DType::f32;
}

Shard state_shard(const LlamaDeclaration& model, Role role, int block, DType dtype) {
  const BlockSpec& spec = model.blocks[static_cast<std::size_t>(block)];
  Shard shard;
  shard.role = role;
  shard.block = block;
  shard.dtype = dtype;
  shard.count = spec.count;
  shard.name = fmt::format("{}/{}", role_name(role), spec.name);
  return shard;
}

Use use_of_state(const Program& program, Role role, int block, Access access) {
  const ShardId id = program.find(role, block);
  ensure(id.valid());  // declare_state() comes first, with gradients if a backward follows.
  return {id, access};
}

void check_groups(const LlamaDeclaration& model, int micro_batches, int group) {
  if (group < 1 || micro_batches % group != 0)
    throw ConfigError(fmt::format(
        "an accumulation group of {} micro-batches does not divide the {} of a step: all groups "
        "are of one size",
        group, micro_batches));
  if (group > 1 && model.head_weight == HeadWeight::tied)
    throw ConfigError(fmt::format(
        "an accumulation group of {} micro-batches and tie_word_embeddings contradict each other: "
        "head and embedding add to one gradient, and groups would change the order of that sum and "
        "with it the bits of the result. Set offload.accumulation_group: horizontal",
        group));
}

void declare_group(const LlamaDeclaration& model, Program& program, Sequence& sequence, int first,
                   const ProgramVariant& variant) {
  std::vector<MicroBatchDeclaration> group;
  for (int i = 0; i < variant.accumulation_group; ++i)
    group.emplace_back(model, program, sequence, first + i, variant.kept_layers);
  const int head = static_cast<int>(model.blocks.size()) - 1;
  for (int block = 0; block < head; ++block)
    for (MicroBatchDeclaration& micro_batch : group) micro_batch.forward(block);
  for (MicroBatchDeclaration& micro_batch : group) micro_batch.loss();
  for (int block = head - 1; block >= 0; --block)
    for (MicroBatchDeclaration& micro_batch : group) micro_batch.backward(block);
}

}  // namespace

void declare_state(const LlamaDeclaration& model, Program& program, int micro_batches) {
  program.contribution_dtype = model.dims.dtype;
  ensure(program.works.empty());  // Segments find theirs by LlamaSegment.
  for (const SegmentCost& cost : model.costs) program.works.push_back(cost.work);
  for (int block = 0; block < static_cast<int>(model.blocks.size()); ++block) {
    program.blocks.push_back(model.blocks[static_cast<std::size_t>(block)].name);
    program.add(program.shared(state_shard(model, Role::weight, block, model.dims.dtype)));
    if (micro_batches == 0) continue;
    const DType dtype = gradient_dtype(model, block, micro_batches);
    program.add(program.shared(state_shard(model, Role::gradient, block, dtype)));
  }
}

void declare_training(const LlamaDeclaration& model, Program& program, Sequence& sequence,
                      int micro_batches, const ProgramVariant& variant) {
  check_groups(model, micro_batches, variant.accumulation_group);
  ensure(variant.kept_layers >= 0);
  for (int first = 0; first < micro_batches; first += variant.accumulation_group)
    declare_group(model, program, sequence, first, variant);
}

MicroBatchDeclaration::MicroBatchDeclaration(const LlamaDeclaration& model, Program& program,
                                             Sequence& sequence, int micro_batch, int kept_layers)
    : model_(model),
      program_(program),
      sequence_(sequence),
      micro_batch_(micro_batch),
      kept_layers_(kept_layers) {
  input_ = shard(Role::input, -1, DType::i32, 3 * model.dims.t);
}

void MicroBatchDeclaration::forward(int block) {
  block == 0 ? forward_embedding() : forward_layer(block);
}

void MicroBatchDeclaration::forward_embedding() {
  append(SegmentKind::forward, 0, {weight(0), input(), output(0, Access::produce)},
         LlamaSegment::embedding_forward);
}

void MicroBatchDeclaration::forward_layer(int block) {
  std::vector<Use> uses{weight(block), input(), output(block - 1, Access::read),
                        output(block, Access::produce)};
  if (!keeps(block)) {
    return append(SegmentKind::forward, block, std::move(uses), LlamaSegment::layer_forward);
  }
  uses.push_back(saved(block, Access::produce));
  append(SegmentKind::forward, block, std::move(uses), LlamaSegment::layer_forward_keeping);
}

void MicroBatchDeclaration::score() {
  std::vector<Use> uses;
  for (int block : head_weight_blocks()) uses.push_back(weight(block));
  uses.insert(uses.end(), {input(), output(head_block() - 1, Access::read), metric()});
  append(SegmentKind::score, head_block(), std::move(uses), LlamaSegment::score);
}

void MicroBatchDeclaration::loss() {
  std::vector<Use> uses;
  for (int block : head_weight_blocks()) uses.push_back(weight(block));
  uses.insert(uses.end(), {input(), output(head_block() - 1, Access::read), metric(),
                           output_gradient(head_block() - 1, Access::produce)});
  for (int block : head_weight_blocks()) uses.push_back(gradient(block));
  append(SegmentKind::loss, head_block(), std::move(uses), LlamaSegment::loss);
}

void MicroBatchDeclaration::backward(int block) {
  block == 0 ? backward_embedding() : backward_layer(block);
}

void MicroBatchDeclaration::backward_layer(int block) {
  std::vector<Use> uses{weight(block),
                        input(),
                        output(block - 1, Access::read),
                        output_gradient(block, Access::read),
                        output_gradient(block - 1, Access::produce),
                        gradient(block)};
  if (!keeps(block)) {
    return append(SegmentKind::backward, block, std::move(uses), LlamaSegment::layer_backward);
  }
  uses.push_back(saved(block, Access::read));
  append(SegmentKind::backward, block, std::move(uses), LlamaSegment::layer_backward_kept);
}

void MicroBatchDeclaration::backward_embedding() {
  append(SegmentKind::backward, 0, {input(), output_gradient(0, Access::read), gradient(0)},
         LlamaSegment::embedding_backward);
}

std::vector<int> MicroBatchDeclaration::head_weight_blocks() const {
  if (model_.head_weight == HeadWeight::tied) return {head_block(), 0};
  return {head_block()};
}

Use MicroBatchDeclaration::weight(int block) const {
  return use_of_state(program_, Role::weight, block, Access::read);
}

Use MicroBatchDeclaration::gradient(int block) const {
  return use_of_state(program_, Role::gradient, block, Access::accumulate);
}

Use MicroBatchDeclaration::output(int block, Access access) {
  const Dims& n = model_.dims;
  return {shard(Role::activation, block, n.dtype, n.t * n.h), access};
}

Use MicroBatchDeclaration::output_gradient(int block, Access access) {
  const Dims& n = model_.dims;
  return {shard(Role::activation_gradient, block, n.dtype, n.t * n.h), access};
}

Use MicroBatchDeclaration::saved(int block, Access access) {
  // f32 on paper: the layer alone knows what lies where.
  const auto count = static_cast<std::int64_t>(model_.saved_bytes) / dtype_bytes(DType::f32);
  return {shard(Role::saved, block, DType::f32, count), access};
}

// Every prefix of the layers keeps its share of those kept, rounded down.
bool MicroBatchDeclaration::keeps(int block) const {
  const std::int64_t layers = head_block() - 1;
  const std::int64_t kept = std::min<std::int64_t>(kept_layers_, layers);
  return block * kept / layers > (block - 1) * kept / layers;
}

Use MicroBatchDeclaration::metric() {
  return {shard(Role::metric, head_block(), DType::f64, 1), Access::produce};
}

ShardId MicroBatchDeclaration::shard(Role role, int block, DType dtype, std::int64_t count) {
  const ShardId known = program_.find(role, block, micro_batch_);
  if (known.valid()) return known;
  Shard added;
  added.role = role;
  added.block = block;
  added.micro_batch = micro_batch_;
  added.dtype = dtype;
  added.count = count;
  const std::string owner =
      block < 0 ? "" : "/" + model_.blocks[static_cast<std::size_t>(block)].name;
  added.name = fmt::format("{}{}/micro-batch {}", role_name(role), owner, micro_batch_);
  return program_.add(std::move(added));
}

void MicroBatchDeclaration::append(SegmentKind kind, int block, std::vector<Use> uses,
                                   LlamaSegment costs_of) {
  Segment segment;
  segment.kind = kind;
  segment.block = block;
  segment.micro_batch = micro_batch_;
  segment.uses = std::move(uses);
  const auto work = static_cast<std::size_t>(costs_of);
  segment.scratch_bytes = model_.costs[work].scratch_bytes;
  segment.work = static_cast<int>(work);
  segment.name = fmt::format("{} {} micro-batch {}", segment_kind_name(kind),
                             model_.blocks[static_cast<std::size_t>(block)].name, micro_batch_);
  sequence_.segments.push_back(program_.add(std::move(segment)));
}

}  // namespace strata
