#include <fmt/format.h>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model/decoder_layer.hpp"
#include "model/dims.hpp"
#include "model/llama_head.hpp"
#include "model/llama_layout.hpp"
#include "model/llama_program.hpp"
#include "model/token_embedding.hpp"
#include "strata/core/error.hpp"
#include "strata/model/model.hpp"

namespace strata {
namespace {

void require(bool holds, std::string_view rule, std::int64_t first, std::int64_t second) {
  if (!holds) throw ConfigError(fmt::format("model: {} ({} and {})", rule, first, second));
}

void require_positive(std::string_view name, std::int64_t value) {
  if (value <= 0) throw ConfigError(fmt::format("model: {} must be positive, not {}", name, value));
}

void check_config(const LlamaConfig& config, const ComputeShape& shape) {
  require_positive("vocab_size", config.vocab_size);
  require_positive("hidden_size", config.hidden_size);
  require_positive("intermediate_size", config.intermediate_size);
  require_positive("num_hidden_layers", config.num_layers);
  require_positive("num_attention_heads", config.num_heads);
  require_positive("num_key_value_heads", config.num_key_value_heads);
  require_positive("head_dim", config.head_dim);
  require_positive("tokens per micro-batch", shape.tokens_per_micro_batch);
  require(config.num_heads % config.num_key_value_heads == 0,
          "num_attention_heads must be a multiple of num_key_value_heads", config.num_heads,
          config.num_key_value_heads);
  require(config.head_dim % 2 == 0, "RoPE turns pairs: head_dim must be a multiple of 2",
          config.head_dim, 2);
  require(shape.loss_chunk_tokens >= 0, "loss_chunk_tokens must not be negative",
          shape.loss_chunk_tokens, 0);
  if (shape.compute_dtype == DType::f32 || shape.compute_dtype == DType::bf16) return;
  throw ConfigError(
      fmt::format("model: computes in f32 or bf16, not {}", dtype_name(shape.compute_dtype)));
}

Dims make_dims(const LlamaConfig& config, const ComputeShape& shape) {
  return {.t = shape.tokens_per_micro_batch,
          .h = config.hidden_size,
          .q = config.num_heads,
          .g = config.num_key_value_heads,
          .d = config.head_dim,
          .f = config.intermediate_size,
          .v = config.vocab_size,
          .dtype = shape.compute_dtype,
          .epsilon = config.rms_norm_epsilon};
}

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

class LlamaModel final : public Model {
 public:
  LlamaModel(const LlamaConfig& config, const ComputeShape& shape, Kernels& kernels)
      : dims_(make_dims(config, shape)),
        head_weight_(config.tie_word_embeddings ? HeadWeight::tied : HeadWeight::own),
        layout_(config),
        kernels_(kernels),
        embedding_(dims_, layout_.embedding, kernels),
        layer_(dims_, layout_.layer, rope_inverse_frequencies(config), kernels),
        head_(dims_, shape.loss_chunk_tokens, kernels) {
    for (const BlockSpec& block : layout_.blocks) gaps_.push_back(alignment_gaps(block));
  }

  const std::vector<BlockSpec>& blocks() const override { return layout_.blocks; }

  std::int64_t num_parameters() const override {
    std::int64_t count = 0;
    for (const BlockSpec& block : layout_.blocks) {
      for (const ParameterSpec& parameter : block.parameters) count += parameter.count();
    }
    return count;
  }

  void declare_state(Program& program, int micro_batches) const override {
    strata::declare_state(declaration(), program, micro_batches);
  }

  void declare_training(Program& program, Sequence& sequence, int micro_batches,
                        const ProgramVariant& variant) const override {
    strata::declare_training(declaration(), program, sequence, micro_batches, variant);
  }

  void declare_score(Program& program, Sequence& sequence, int micro_batch) const override {
    const LlamaDeclaration model = declaration();
    MicroBatchDeclaration segments(model, program, sequence, micro_batch);
    for (int block = 0; block < static_cast<int>(head_block()); ++block) segments.forward(block);
    segments.score();
  }

  void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
           Stream& stream) override {
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

 private:
  LlamaDeclaration declaration() const {
    return {layout_.blocks,
            dims_,
            head_weight_,
            {embedding_.forward_cost(), embedding_.backward_cost(), layer_.forward_cost(),
             layer_.backward_cost(), head_.score_cost(), head_.loss_cost()}};
  }

  void forward_embedding(const SegmentOperands& use, Stream& stream) const {
    embedding_.forward(use.flat(0), use.tokens(1), use.hidden(2), stream);
  }

  void forward_layer(const SegmentOperands& use, Stream& stream) const {
    layer_.forward({use.flat(0), use.document_start(1), use.hidden(2), use.hidden(3)},
                   use.scratch(), stream);
  }

  void score(const SegmentOperands& use, const StepArgs& args, Stream& stream) const {
    head_.score(score_args(use, args), use.scratch(), stream);
  }

  void loss(const SegmentOperands& use, const StepArgs& args, Stream& stream) const {
    const std::size_t first = num_head_weights() + 3;
    const HeadWeights contributions = head_weights(use, first + 1);
    head_.loss({score_args(use, args), use.hidden(first), contributions}, use.scratch(), stream);
    clear_gaps(head_block(), use.flat(first + 1), stream);
    if (head_weight_ == HeadWeight::tied) clear_gaps(0, use.flat(first + 2), stream);
  }

  void backward_layer(int block, const SegmentOperands& use, Stream& stream) const {
    layer_.backward({use.flat(0), use.document_start(1), use.hidden(2), use.hidden(3),
                     use.hidden(4), use.flat(5)},
                    use.scratch(), stream);
    clear_gaps(static_cast<std::size_t>(block), use.flat(5), stream);
  }

  void backward_embedding(const SegmentOperands& use, Stream& stream) const {
    embedding_.backward(use.tokens(0), use.hidden(1), use.flat(2), use.scratch(), stream);
    clear_gaps(0, use.flat(2), stream);
  }

  std::size_t head_block() const { return layout_.blocks.size() - 1; }
  std::size_t num_head_weights() const { return head_weight_ == HeadWeight::tied ? 2 : 1; }

  // The head's weights, or its contributions, from use `first` on.
  HeadWeights head_weights(const SegmentOperands& use, std::size_t first) const {
    const TensorView norm_h = layout_.head.norm.of(use.flat(first));
    if (head_weight_ == HeadWeight::tied) {
      return {norm_h, layout_.embedding.table.of(use.flat(first + 1))};
    }
    return {norm_h, layout_.head.projection.of(use.flat(first))};
  }

  ScoreArgs score_args(const SegmentOperands& use, const StepArgs& args) const {
    const std::size_t input = num_head_weights();
    return {.weights = head_weights(use, 0),
            .labels_t = use.labels(input),
            .x_th = use.hidden(input + 1),
            .loss_scale = args.loss_scale,
            .loss = use.flat(input + 2)};
  }

  // Zeros, written as the column sums of no rows: the one way to zeros that the kernel table has on
  // any device.
  void clear_gaps(std::size_t block, const TensorView& contribution, Stream& stream) const {
    for (const AlignmentGap& gap : gaps_[block]) {
      const TensorView elements = contribution.slice(gap.offset, {gap.count});
      const TensorView no_rows{elements.data, elements.dtype, {0, gap.count}};
      kernels_.bias_backward(no_rows, elements, stream);
    }
  }

  // Constant after construction.
  Dims dims_;
  HeadWeight head_weight_;
  LlamaLayout layout_;
  std::vector<std::vector<AlignmentGap>> gaps_;  // per block
  Kernels& kernels_;
  TokenEmbedding embedding_;
  DecoderLayer layer_;
  LlamaHead head_;
};

}  // namespace

std::unique_ptr<Model> make_llama(const LlamaConfig& config, const ComputeShape& shape,
                                  Kernels& kernels) {
  check_config(config, shape);
  return std::make_unique<LlamaModel>(config, shape, kernels);
}

}  // namespace strata
