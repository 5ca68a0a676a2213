#include "model/llama_runner.hpp"

namespace strata {
namespace {

Dims make_dims(const LlamaConfig& config, const ComputeShape& shape) {
  return {.t = shape.tokens_per_micro_batch,
          .h = config.hidden_size,
          .q = config.num_heads,
          .g = config.num_key_value_heads,
          .d = config.head_dim,
          .f = config.intermediate_size,
          .v = config.vocab_size,
          .query_key_norm = config.query_key_norm,
          .dtype = shape.compute_dtype,
          .epsilon = config.rms_norm_epsilon,
          .rope_attention_factor = static_cast<float>(config.rope_attention_factor)};
}

}  // namespace

// A segment's views by their place in llama_program.hpp's table.
class SegmentOperands {
 public:
  SegmentOperands(const Segment& segment, const SegmentViews& views, const Dims& dims)
      : views_(views), dims_(dims) {
    ensure(views.uses.size() == segment.uses.size());
    ensure(views.scratch.size() >= segment.scratch_bytes);
    for (const TensorView& view : views.uses) ensure(!view.empty());
  }

  const TensorView& flat(std::size_t use) const { return views_.uses[use]; }
  TensorView flat_or_none(std::size_t use) const {
    return use < views_.uses.size() ? flat(use) : TensorView{};
  }
  TensorView hidden(std::size_t use) const { return flat(use).reshaped({dims_.t, dims_.h}); }
  TensorView tokens(std::size_t use) const { return input_part(use, 0); }
  TensorView labels(std::size_t use) const { return input_part(use, 1); }
  TensorView document_start(std::size_t use) const { return input_part(use, 2); }
  std::span<std::byte> scratch() const { return views_.scratch; }

 private:
  TensorView input_part(std::size_t use, std::int64_t part) const {
    return flat(use).slice(part * dims_.t, {dims_.t});
  }

  const SegmentViews& views_;
  const Dims& dims_;
};

LlamaRunner::LlamaRunner(const LlamaConfig& config, const ComputeShape& shape, Kernels& kernels)
    : dims_(make_dims(config, shape)),
      head_weight_(config.tie_word_embeddings ? HeadWeight::tied : HeadWeight::own),
      layout_(config),
      kernels_(kernels),
      embedding_(dims_, layout_.embedding, kernels),
      layer_(dims_, layout_.layer, rope_inverse_frequencies(config), kernels),
      head_(dims_, shape.loss_chunk_tokens, kernels) {
  for (const BlockSpec& block : layout_.blocks) gaps_.push_back(alignment_gaps(block));
}

LlamaDeclaration LlamaRunner::declaration(const LlamaCosts& costs) const {
  return {layout_.blocks, dims_, head_weight_, layer_.saved_bytes(), costs};
}

std::uint64_t LlamaRunner::scratch_bytes(LlamaSegment segment) const {
  switch (segment) {
    case LlamaSegment::embedding_forward:
      return 0;
    case LlamaSegment::embedding_backward:
      return embedding_.backward_scratch_bytes();
    case LlamaSegment::layer_forward:
      return layer_.forward_scratch_bytes();
    case LlamaSegment::layer_backward:
      return layer_.backward_scratch_bytes();
    case LlamaSegment::layer_forward_keeping:
      return layer_.keeping_forward_scratch_bytes();
    case LlamaSegment::layer_backward_kept:
      return layer_.kept_backward_scratch_bytes();
    case LlamaSegment::score:
      return head_.score_scratch_bytes();
    case LlamaSegment::loss:
      return head_.loss_scratch_bytes();
  }
  ensure(false);
  return 0;
}

void LlamaRunner::run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
                      Stream& stream) {
  const SegmentOperands operands(segment, views, dims_);
  const bool embedding = segment.block == 0;
  switch (segment.kind) {
    case SegmentKind::forward:
      return embedding ? forward_embedding(operands, stream) : forward_layer(operands, stream);
    case SegmentKind::backward:
      return embedding ? backward_embedding(operands, stream)
                       : backward_layer(segment.block, operands, stream);
    case SegmentKind::loss:
      return loss(operands, args, stream);
    case SegmentKind::score:
      return score(operands, args, stream);
    case SegmentKind::norm:
    case SegmentKind::update:
      break;
  }
  ensure(false);  // Not a segment that a model declares.
}

void LlamaRunner::forward_embedding(const SegmentOperands& use, Stream& stream) const {
  embedding_.forward(use.flat(0), use.tokens(1), use.hidden(2), stream);
}

void LlamaRunner::forward_layer(const SegmentOperands& use, Stream& stream) const {
  layer_.forward(
      {use.flat(0), use.document_start(1), use.hidden(2), use.hidden(3), use.flat_or_none(4)},
      use.scratch(), stream);
}

void LlamaRunner::score(const SegmentOperands& use, const StepArgs& args, Stream& stream) const {
  head_.score(score_args(use, args), use.scratch(), stream);
}

void LlamaRunner::loss(const SegmentOperands& use, const StepArgs& args, Stream& stream) const {
  const std::size_t first = num_head_weights() + 3;
  const HeadWeights contributions = head_weights(use, first + 1);
  head_.loss({score_args(use, args), use.hidden(first), contributions}, use.scratch(), stream);
  clear_gaps(head_block(), use.flat(first + 1), stream);
  if (head_weight_ == HeadWeight::tied) clear_gaps(0, use.flat(first + 2), stream);
}

void LlamaRunner::backward_layer(int block, const SegmentOperands& use, Stream& stream) const {
  layer_.backward({use.flat(0), use.document_start(1), use.hidden(2), use.hidden(3), use.hidden(4),
                   use.flat(5), use.flat_or_none(6)},
                  use.scratch(), stream);
  clear_gaps(static_cast<std::size_t>(block), use.flat(5), stream);
}

void LlamaRunner::backward_embedding(const SegmentOperands& use, Stream& stream) const {
  embedding_.backward(use.tokens(0), use.hidden(1), use.flat(2), use.scratch(), stream);
  clear_gaps(0, use.flat(2), stream);
}

// The head's weights, or its contributions, from use `first` on.
HeadWeights LlamaRunner::head_weights(const SegmentOperands& use, std::size_t first) const {
  const TensorView norm_h = layout_.head.norm.of(use.flat(first));
  if (head_weight_ == HeadWeight::tied) {
    return {norm_h, layout_.embedding.table.of(use.flat(first + 1))};
  }
  return {norm_h, layout_.head.projection.of(use.flat(first))};
}

ScoreArgs LlamaRunner::score_args(const SegmentOperands& use, const StepArgs& args) const {
  const std::size_t input = num_head_weights();
  return {.weights = head_weights(use, 0),
          .labels_t = use.labels(input),
          .x_th = use.hidden(input + 1),
          .loss_scale = args.loss_scale,
          .loss = use.flat(input + 2)};
}

// Zeros, written as the column sums of no rows: the one way to zeros that the kernel table has on
// any device.
void LlamaRunner::clear_gaps(std::size_t block, const TensorView& contribution,
                             Stream& stream) const {
  for (const AlignmentGap& gap : gaps_[block]) {
    const TensorView elements = contribution.slice(gap.offset, {gap.count});
    const TensorView no_rows{elements.data, elements.dtype, {0, gap.count}};
    kernels_.bias_backward(no_rows, elements, stream);
  }
}

}  // namespace strata
