#include "model/decoder_layer.hpp"

#include <cmath>
#include <utility>

#include "model/layer_memory.hpp"
#include "model/scratch_arena.hpp"

namespace strata {
namespace {

// The layer's constants and one call's operands that both directions share.
struct LayerContext {
  const Dims& dims;
  const LayerLayout& layout;
  std::span<const float> inverse_frequencies;
  Kernels& kernels;
  TensorView weights;
  TensorView document_start_t;
  Stream& stream;
};

TensorView merged_heads(const TensorView& x_tqd) {
  return x_tqd.reshaped({x_tqd.dim(0), x_tqd.dim(1) * x_tqd.dim(2)});
}

// A row for each head of each token.
TensorView head_rows(const TensorView& x_tqd) {
  return x_tqd.reshaped({x_tqd.dim(0) * x_tqd.dim(1), x_tqd.dim(2)});
}

// The forward computation, whole or as recomputation.
class LayerForward {
 public:
  LayerForward(const LayerContext& context, const LayerForwardMemory& memory)
      : context_(context), memory_(memory) {}

  // x1 = x + o_proj(attention(norm(x))).
  void attend(const TensorView& x_th, const TensorView& x1_th) const {
    const AttentionValues& values = memory_.attention;
    normalize(x_th, context_.layout.input_norm, values.normed_th, values.rstd_t);
    project_heads();
    context_.kernels.attention_forward(attention_args(), context_.stream);
    context_.kernels.cast(x_th, x1_th, context_.stream);
    project(merged_heads(values.out_tqd), context_.layout.output, x1_th, Accumulate::yes);
  }

  // product = silu(gate_proj(norm(x1))) * up_proj(norm(x1)).
  void gate(const TensorView& x1_th) const {
    const MlpValues& values = memory_.mlp;
    normalize(x1_th, context_.layout.post_attention_norm, values.normed_th, values.rstd_t);
    project(values.normed_th, context_.layout.gate, values.gate_tf, Accumulate::no);
    project(values.normed_th, context_.layout.up, values.up_tf, Accumulate::no);
    context_.kernels.swiglu_forward(values.gate_tf, values.up_tf, values.product_tf,
                                    context_.stream);
  }

  // y holds x1 and becomes x1 + down_proj(product).
  void reduce(const TensorView& y_th) const {
    project(memory_.mlp.product_tf, context_.layout.down, y_th, Accumulate::yes);
  }

  // Zeros between the saved values, where alignment leaves room.
  void clear_gaps(const TensorView& saved) const {
    std::byte* end = begin_of(saved);
    for (const TensorView& value : saved_values(memory_)) {
      if (value.empty()) continue;
      clear(end, begin_of(value));
      end = end_of(value);
    }
    clear(end, end_of(saved));
  }

  AttentionArgs attention_args() const {
    const AttentionValues& values = memory_.attention;
    AttentionArgs args;
    args.q_tqd = values.q_tqd;
    args.k_tgd = values.k_tgd;
    args.v_tgd = values.v_tgd;
    args.document_start_t = context_.document_start_t;
    // The factor of what RoPE turns: of q and of k, so twice in their product.
    const float factor = context_.dims.rope_attention_factor;
    args.scale = factor * factor / std::sqrt(static_cast<float>(context_.dims.d));
    args.out_tqd = values.out_tqd;
    args.lse_qt = values.lse_qt;
    args.scratch = memory_.kernel;
    return args;
  }

 private:
  void normalize(const TensorView& x_th, const ParameterSlice& weight, const TensorView& y_th,
                 const TensorView& rstd_t) const {
    context_.kernels.rmsnorm_forward(x_th, weight.of(context_.weights), context_.dims.epsilon, y_th,
                                     rstd_t, context_.stream);
  }

  void project(const TensorView& x_tk, const LinearSlices& linear, const TensorView& y_tn,
               Accumulate accumulate) const {
    context_.kernels.linear_forward(x_tk, linear.weight.of(context_.weights),
                                    linear.bias.of(context_.weights), y_tn, accumulate,
                                    context_.stream);
  }

  static std::byte* begin_of(const TensorView& view) { return view.as<std::byte>(); }
  static std::byte* end_of(const TensorView& view) { return view.as<std::byte>() + view.bytes(); }

  // As column sums of no rows, like the model's other gaps.
  void clear(std::byte* begin, std::byte* end) const {
    const std::int64_t count = (end - begin) / dtype_bytes(DType::bf16);
    if (count == 0) return;
    context_.kernels.bias_backward({begin, DType::bf16, {0, count}}, {begin, DType::bf16, {count}},
                                   context_.stream);
  }

  void project_heads() const {
    const AttentionValues& values = memory_.attention;
    const LayerLayout& layout = context_.layout;
    project_normed(layout.query, layout.query_norm, values.query_norm, values.q_tqd);
    project_normed(layout.key, layout.key_norm, values.key_norm, values.k_tgd);
    project(values.normed_th, layout.value, merged_heads(values.v_tgd), Accumulate::no);
    for (const TensorView& rotated : {values.q_tqd, values.k_tgd}) {
      context_.kernels.rope(rotated, context_.document_start_t, context_.inverse_frequencies,
                            Rotation::forward, context_.stream);
    }
  }

  // Heads of q or k, each normed if the model has a norm for them.
  void project_normed(const LinearSlices& linear, const ParameterSlice& norm,
                      const HeadNormValues& before, const TensorView& x_tqd) const {
    const TensorView& projected = norm.present() ? before.projected : x_tqd;
    project(memory_.attention.normed_th, linear, merged_heads(projected), Accumulate::no);
    if (norm.present()) normalize(head_rows(projected), norm, head_rows(x_tqd), before.rstd);
  }

  const LayerContext& context_;
  const LayerForwardMemory& memory_;
};

// The gradients, once the forward's values are in their places.
class LayerBackward {
 public:
  LayerBackward(const LayerContext& context, const LayerBackwardMemory& memory,
                const LayerBackwardArgs& args)
      : context_(context), memory_(memory), args_(args) {}

  // dx = dy + the gradient of x1 through the feed-forward half: dx1.
  void feed_forward() const {
    const MlpValues& values = memory_.forward.mlp;
    const LayerLayout& layout = context_.layout;
    weight_gradients(args_.dy_th, values.product_tf, layout.down);
    input_gradient(args_.dy_th, layout.down, memory_.dproduct_tf, Accumulate::no);
    context_.kernels.swiglu_backward(memory_.dproduct_tf, values.gate_tf, values.up_tf,
                                     memory_.dgate_tf, memory_.dup_tf, context_.stream);
    linear(memory_.dgate_tf, values.normed_th, layout.gate, Accumulate::no);
    linear(memory_.dup_tf, values.normed_th, layout.up, Accumulate::yes);
    context_.kernels.cast(args_.dy_th, args_.dx_th, context_.stream);
    norm(memory_.forward.x1_th, layout.post_attention_norm, values.rstd_t);
  }

  // dx holds dx1 and becomes dx1 + the gradient of x through the attention half.
  void attention(AttentionArgs args) const {
    const AttentionValues& values = memory_.forward.attention;
    const LayerLayout& layout = context_.layout;
    weight_gradients(args_.dx_th, merged_heads(values.out_tqd), layout.output);
    input_gradient(args_.dx_th, layout.output, merged_heads(memory_.dout_tqd), Accumulate::no);
    scores(args);
    // In this order: what the norm of k gives lies where dq was.
    const TensorView dq_tqd =
        before_norm(memory_.dq_tqd, layout.query_norm, values.query_norm, memory_.dprojected_tqd);
    linear(merged_heads(dq_tqd), values.normed_th, layout.query, Accumulate::no);
    const TensorView dk_tgd =
        before_norm(memory_.dk_tgd, layout.key_norm, values.key_norm, memory_.dprojected_tgd);
    linear(merged_heads(dk_tgd), values.normed_th, layout.key, Accumulate::yes);
    linear(merged_heads(memory_.dv_tgd), values.normed_th, layout.value, Accumulate::yes);
    norm(args_.x_th, layout.input_norm, values.rstd_t);
  }

 private:
  void scores(AttentionArgs& args) const {
    args.dout_tqd = memory_.dout_tqd;
    args.dq_tqd = memory_.dq_tqd;
    args.dk_tgd = memory_.dk_tgd;
    args.dv_tgd = memory_.dv_tgd;
    context_.kernels.attention_backward(args, context_.stream);
    for (const TensorView& rotated : {memory_.dq_tqd, memory_.dk_tgd}) {
      context_.kernels.rope(rotated, context_.document_start_t, context_.inverse_frequencies,
                            Rotation::inverse, context_.stream);
    }
  }

  // The gradient of q or k as projected: through the norm of its heads if the model has one.
  TensorView before_norm(const TensorView& dx_tqd, const ParameterSlice& weight,
                         const HeadNormValues& values, const TensorView& dprojected_tqd) const {
    if (!weight.present()) return dx_tqd;
    context_.kernels.rmsnorm_backward(
        head_rows(dx_tqd), head_rows(values.projected), weight.of(context_.weights), values.rstd,
        head_rows(dprojected_tqd), Accumulate::no, weight.of(args_.contribution),
        memory_.forward.kernel, context_.stream);
    return dprojected_tqd;
  }

  // Both gradients of a projection of a normed input; dnormed is written or added to.
  void linear(const TensorView& dy_tn, const TensorView& x_tk, const LinearSlices& slices,
              Accumulate accumulate) const {
    weight_gradients(dy_tn, x_tk, slices);
    input_gradient(dy_tn, slices, memory_.dnormed_th, accumulate);
  }

  void input_gradient(const TensorView& dy_tn, const LinearSlices& slices, const TensorView& dx_tk,
                      Accumulate accumulate) const {
    context_.kernels.linear_backward_input(dy_tn, slices.weight.of(context_.weights), dx_tk,
                                           accumulate, context_.stream);
  }

  void weight_gradients(const TensorView& dy_tn, const TensorView& x_tk,
                        const LinearSlices& slices) const {
    context_.kernels.linear_backward_weight(dy_tn, x_tk, slices.weight.of(args_.contribution),
                                            Accumulate::no, context_.stream);
    if (!slices.bias.present()) return;
    context_.kernels.bias_backward(dy_tn, slices.bias.of(args_.contribution), context_.stream);
  }

  // dx += the gradient through one of the norms.
  void norm(const TensorView& x_th, const ParameterSlice& weight, const TensorView& rstd_t) const {
    context_.kernels.rmsnorm_backward(memory_.dnormed_th, x_th, weight.of(context_.weights), rstd_t,
                                      args_.dx_th, Accumulate::yes, weight.of(args_.contribution),
                                      memory_.forward.kernel, context_.stream);
  }

  const LayerContext& context_;
  const LayerBackwardMemory& memory_;
  const LayerBackwardArgs& args_;
};

void differentiate(const LayerContext& context, const LayerBackwardMemory& memory,
                   const LayerBackwardArgs& args) {
  const LayerBackward backward(context, memory, args);
  backward.feed_forward();
  backward.attention(LayerForward(context, memory.forward).attention_args());
}

std::span<std::byte> bytes_of(const TensorView& view) {
  return {view.as<std::byte>(), static_cast<std::size_t>(view.bytes())};
}

void forward_keeping(const LayerContext& context, const LayerForwardArgs& args,
                     ScratchArena& scratch) {
  ScratchArena saved(bytes_of(args.saved));
  const LayerForwardMemory memory =
      carve_keeping_forward(scratch, saved, context.dims, context.kernels);
  const LayerForward forward(context, memory);
  forward.attend(args.x_th, memory.x1_th);
  forward.gate(memory.x1_th);
  context.kernels.cast(memory.x1_th, args.y_th, context.stream);
  forward.reduce(args.y_th);
  forward.clear_gaps(args.saved);
}

void backward_kept(const LayerContext& context, const LayerBackwardArgs& args,
                   ScratchArena& scratch) {
  ScratchArena saved(bytes_of(args.saved));
  differentiate(context, carve_kept_backward(scratch, saved, context.dims, context.kernels), args);
}

}  // namespace

DecoderLayer::DecoderLayer(const Dims& dims, const LayerLayout& layout,
                           std::vector<float> inverse_frequencies, Kernels& kernels)
    : dims_(dims),
      layout_(layout),
      inverse_frequencies_(std::move(inverse_frequencies)),
      kernels_(kernels) {}

std::uint64_t DecoderLayer::forward_scratch_bytes() const {
  ScratchArena counter;
  carve_forward(counter, dims_, kernels_);
  return counter.peak_bytes();
}

std::uint64_t DecoderLayer::backward_scratch_bytes() const {
  ScratchArena counter;
  carve_backward(counter, dims_, kernels_);
  return counter.peak_bytes();
}

std::uint64_t DecoderLayer::saved_bytes() const {
  ScratchArena scratch, counter;
  carve_keeping_forward(scratch, counter, dims_, kernels_);
  return counter.peak_bytes();
}

std::uint64_t DecoderLayer::keeping_forward_scratch_bytes() const {
  ScratchArena counter, saved;
  carve_keeping_forward(counter, saved, dims_, kernels_);
  return counter.peak_bytes();
}

std::uint64_t DecoderLayer::kept_backward_scratch_bytes() const {
  ScratchArena counter, saved;
  carve_kept_backward(counter, saved, dims_, kernels_);
  return counter.peak_bytes();
}

void DecoderLayer::forward(const LayerForwardArgs& args, std::span<std::byte> scratch,
                           Stream& stream) const {
  ScratchArena arena(scratch);
  const LayerContext context{
      dims_, layout_, inverse_frequencies_, kernels_, args.weights, args.document_start_t, stream};
  if (!args.saved.empty()) return forward_keeping(context, args, arena);
  const LayerForwardMemory memory = carve_forward(arena, dims_, kernels_);
  const LayerForward forward(context, memory);
  forward.attend(args.x_th, args.y_th);
  forward.gate(args.y_th);
  forward.reduce(args.y_th);
}

void DecoderLayer::backward(const LayerBackwardArgs& args, std::span<std::byte> scratch,
                            Stream& stream) const {
  ScratchArena arena(scratch);
  const LayerContext context{
      dims_, layout_, inverse_frequencies_, kernels_, args.weights, args.document_start_t, stream};
  if (!args.saved.empty()) return backward_kept(context, args, arena);
  const LayerBackwardMemory memory = carve_backward(arena, dims_, kernels_);
  const LayerForward recompute(context, memory.forward);
  recompute.attend(args.x_th, memory.forward.x1_th);
  recompute.gate(memory.forward.x1_th);
  differentiate(context, memory, args);
}

}  // namespace strata
