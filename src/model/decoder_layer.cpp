#include "model/decoder_layer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/scratch_arena.hpp"

namespace strata {
namespace {

// What the attention half computes on its way from x to x1.
struct AttentionValues {
  TensorView normed_th, rstd_t;
  TensorView q_tqd, k_tgd, v_tgd;
  TensorView out_tqd, lse_qt;
};

// What the feed-forward half computes on its way from x1 to the input of down_proj.
struct MlpValues {
  TensorView normed_th, rstd_t;
  TensorView gate_tf, up_tf, product_tf;
};

struct ForwardScratch {
  AttentionValues attention;
  MlpValues mlp;
  std::span<std::byte> kernel;
};

struct BackwardScratch {
  ForwardScratch forward;
  TensorView x1_th;
  TensorView dnormed_th;                        // of either norm's output
  TensorView dout_tqd, dq_tqd, dk_tgd, dv_tgd;  // in the place of the feed-forward values
};

AttentionValues carve_attention(ScratchArena& arena, const Dims& n) {
  AttentionValues values;
  values.normed_th = arena.take(n.dtype, {n.t, n.h});
  values.rstd_t = arena.take(DType::f32, {n.t});
  values.q_tqd = arena.take(n.dtype, {n.t, n.q, n.d});
  values.k_tgd = arena.take(n.dtype, {n.t, n.g, n.d});
  values.v_tgd = arena.take(n.dtype, {n.t, n.g, n.d});
  values.out_tqd = arena.take(n.dtype, {n.t, n.q, n.d});
  values.lse_qt = arena.take(DType::f32, {n.q, n.t});
  return values;
}

MlpValues carve_mlp(ScratchArena& arena, const Dims& n) {
  MlpValues values;
  values.normed_th = arena.take(n.dtype, {n.t, n.h});
  values.rstd_t = arena.take(DType::f32, {n.t});
  values.gate_tf = arena.take(n.dtype, {n.t, n.f});
  values.up_tf = arena.take(n.dtype, {n.t, n.f});
  values.product_tf = arena.take(n.dtype, {n.t, n.f});
  return values;
}

std::span<std::byte> carve_kernel(ScratchArena& arena, const Dims& n, const Kernels& kernels) {
  return arena.take_bytes(std::max(kernels.attention_scratch_bytes(n.t, n.q, n.g, n.d),
                                   kernels.rmsnorm_scratch_bytes(n.t, n.h)));
}

ForwardScratch carve_forward(ScratchArena& arena, const Dims& n, const Kernels& kernels) {
  ForwardScratch scratch;
  scratch.kernel = carve_kernel(arena, n, kernels);
  scratch.attention = carve_attention(arena, n);
  scratch.mlp = carve_mlp(arena, n);
  return scratch;
}

BackwardScratch carve_backward(ScratchArena& arena, const Dims& n, const Kernels& kernels) {
  BackwardScratch scratch;
  scratch.forward.kernel = carve_kernel(arena, n, kernels);
  scratch.x1_th = arena.take(n.dtype, {n.t, n.h});
  scratch.dnormed_th = arena.take(n.dtype, {n.t, n.h});
  scratch.forward.attention = carve_attention(arena, n);
  const std::uint64_t shared = arena.position();
  scratch.forward.mlp = carve_mlp(arena, n);
  // The feed-forward half is through before the attention half's gradients begin.
  arena.rewind(shared);
  scratch.dout_tqd = arena.take(n.dtype, {n.t, n.q, n.d});
  scratch.dq_tqd = arena.take(n.dtype, {n.t, n.q, n.d});
  scratch.dk_tgd = arena.take(n.dtype, {n.t, n.g, n.d});
  scratch.dv_tgd = arena.take(n.dtype, {n.t, n.g, n.d});
  return scratch;
}

TensorView merged_heads(const TensorView& x_tqd) {
  return x_tqd.reshaped({x_tqd.dim(0), x_tqd.dim(1) * x_tqd.dim(2)});
}

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

// The forward computation over scratch, whole or as recomputation.
class LayerForward {
 public:
  LayerForward(const LayerContext& context, const ForwardScratch& scratch)
      : context_(context), scratch_(scratch) {}

  // x1 = x + o_proj(attention(norm(x))).
  void attend(const TensorView& x_th, const TensorView& x1_th) const {
    const AttentionValues& values = scratch_.attention;
    normalize(x_th, context_.layout.input_norm, values.normed_th, values.rstd_t);
    project_heads();
    context_.kernels.attention_forward(attention_args(), context_.stream);
    context_.kernels.cast(x_th, x1_th, context_.stream);
    project(merged_heads(values.out_tqd), context_.layout.output, x1_th, Accumulate::yes);
  }

  // product = silu(gate_proj(norm(x1))) * up_proj(norm(x1)).
  void gate(const TensorView& x1_th) const {
    const MlpValues& values = scratch_.mlp;
    normalize(x1_th, context_.layout.post_attention_norm, values.normed_th, values.rstd_t);
    project(values.normed_th, context_.layout.gate, values.gate_tf, Accumulate::no);
    project(values.normed_th, context_.layout.up, values.up_tf, Accumulate::no);
    context_.kernels.swiglu_forward(values.gate_tf, values.up_tf, values.product_tf,
                                    context_.stream);
  }

  // y holds x1 and becomes x1 + down_proj(product).
  void reduce(const TensorView& y_th) const {
    project(scratch_.mlp.product_tf, context_.layout.down, y_th, Accumulate::yes);
  }

  AttentionArgs attention_args() const {
    const AttentionValues& values = scratch_.attention;
    AttentionArgs args;
    args.q_tqd = values.q_tqd;
    args.k_tgd = values.k_tgd;
    args.v_tgd = values.v_tgd;
    args.document_start_t = context_.document_start_t;
    args.scale = 1.0f / std::sqrt(static_cast<float>(context_.dims.d));
    args.out_tqd = values.out_tqd;
    args.lse_qt = values.lse_qt;
    args.scratch = scratch_.kernel;
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

  void project_heads() const {
    const AttentionValues& values = scratch_.attention;
    project(values.normed_th, context_.layout.query, merged_heads(values.q_tqd), Accumulate::no);
    project(values.normed_th, context_.layout.key, merged_heads(values.k_tgd), Accumulate::no);
    project(values.normed_th, context_.layout.value, merged_heads(values.v_tgd), Accumulate::no);
    for (const TensorView& rotated : {values.q_tqd, values.k_tgd}) {
      context_.kernels.rope(rotated, context_.document_start_t, context_.inverse_frequencies,
                            Rotation::forward, context_.stream);
    }
  }

  const LayerContext& context_;
  const ForwardScratch& scratch_;
};

// The gradients, after the forward values were recomputed into scratch.
class LayerBackward {
 public:
  LayerBackward(const LayerContext& context, const BackwardScratch& scratch,
                const LayerBackwardArgs& args)
      : context_(context), scratch_(scratch), args_(args) {}

  // dx = dy + the gradient of x1 through the feed-forward half: dx1.
  void feed_forward() const {
    const MlpValues& values = scratch_.forward.mlp;
    const LayerLayout& layout = context_.layout;
    weight_gradients(args_.dy_th, values.product_tf, layout.down);
    const TensorView dproduct_tf = values.product_tf;  // Its last reader was the line above.
    input_gradient(args_.dy_th, layout.down, dproduct_tf, Accumulate::no);
    context_.kernels.swiglu_backward(dproduct_tf, values.gate_tf, values.up_tf, values.gate_tf,
                                     values.up_tf, context_.stream);
    linear(values.gate_tf, values.normed_th, layout.gate, Accumulate::no);
    linear(values.up_tf, values.normed_th, layout.up, Accumulate::yes);
    context_.kernels.cast(args_.dy_th, args_.dx_th, context_.stream);
    norm(scratch_.x1_th, layout.post_attention_norm, values.rstd_t);
  }

  // dx holds dx1 and becomes dx1 + the gradient of x through the attention half.
  void attention(AttentionArgs args) const {
    const AttentionValues& values = scratch_.forward.attention;
    const LayerLayout& layout = context_.layout;
    weight_gradients(args_.dx_th, merged_heads(values.out_tqd), layout.output);
    input_gradient(args_.dx_th, layout.output, merged_heads(scratch_.dout_tqd), Accumulate::no);
    scores(args);
    linear(merged_heads(scratch_.dq_tqd), values.normed_th, layout.query, Accumulate::no);
    linear(merged_heads(scratch_.dk_tgd), values.normed_th, layout.key, Accumulate::yes);
    linear(merged_heads(scratch_.dv_tgd), values.normed_th, layout.value, Accumulate::yes);
    norm(args_.x_th, layout.input_norm, values.rstd_t);
  }

 private:
  void scores(AttentionArgs& args) const {
    args.dout_tqd = scratch_.dout_tqd;
    args.dq_tqd = scratch_.dq_tqd;
    args.dk_tgd = scratch_.dk_tgd;
    args.dv_tgd = scratch_.dv_tgd;
    context_.kernels.attention_backward(args, context_.stream);
    for (const TensorView& rotated : {scratch_.dq_tqd, scratch_.dk_tgd}) {
      context_.kernels.rope(rotated, context_.document_start_t, context_.inverse_frequencies,
                            Rotation::inverse, context_.stream);
    }
  }

  // Both gradients of a projection of a normed input; dnormed is written or added to.
  void linear(const TensorView& dy_tn, const TensorView& x_tk, const LinearSlices& slices,
              Accumulate accumulate) const {
    weight_gradients(dy_tn, x_tk, slices);
    input_gradient(dy_tn, slices, scratch_.dnormed_th, accumulate);
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
    context_.kernels.rmsnorm_backward(
        scratch_.dnormed_th, x_th, weight.of(context_.weights), rstd_t, args_.dx_th,
        Accumulate::yes, weight.of(args_.contribution), scratch_.forward.kernel, context_.stream);
  }

  const LayerContext& context_;
  const BackwardScratch& scratch_;
  const LayerBackwardArgs& args_;
};

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

void DecoderLayer::forward(const LayerForwardArgs& args, std::span<std::byte> scratch,
                           Stream& stream) const {
  ScratchArena arena(scratch);
  const ForwardScratch values = carve_forward(arena, dims_, kernels_);
  const LayerContext context{
      dims_, layout_, inverse_frequencies_, kernels_, args.weights, args.document_start_t, stream};
  const LayerForward forward(context, values);
  forward.attend(args.x_th, args.y_th);
  forward.gate(args.y_th);
  forward.reduce(args.y_th);
}

void DecoderLayer::backward(const LayerBackwardArgs& args, std::span<std::byte> scratch,
                            Stream& stream) const {
  ScratchArena arena(scratch);
  const BackwardScratch values = carve_backward(arena, dims_, kernels_);
  const LayerContext context{
      dims_, layout_, inverse_frequencies_, kernels_, args.weights, args.document_start_t, stream};
  const LayerForward recompute(context, values.forward);
  recompute.attend(args.x_th, values.x1_th);
  recompute.gate(values.x1_th);
  const LayerBackward backward(context, values, args);
  backward.feed_forward();
  backward.attention(recompute.attention_args());
}

}  // namespace strata
