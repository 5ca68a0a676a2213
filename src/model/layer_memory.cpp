#include "model/layer_memory.hpp"

#include <algorithm>

namespace strata {
namespace {

HeadNormValues carve_head_norm(ScratchArena& arena, const Dims& n, std::int64_t heads) {
  if (!n.query_key_norm) return {};
  const TensorView projected = arena.take(n.dtype, {n.t, heads, n.d});
  return {projected, arena.take(DType::f32, {n.t * heads})};
}

AttentionValues carve_attention(ScratchArena& arena, const Dims& n) {
  AttentionValues values;
  values.normed_th = arena.take(n.dtype, {n.t, n.h});
  values.rstd_t = arena.take(DType::f32, {n.t});
  values.query_norm = carve_head_norm(arena, n, n.q);
  values.key_norm = carve_head_norm(arena, n, n.g);
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
  const std::uint64_t heads =
      n.query_key_norm ? kernels.rmsnorm_scratch_bytes(n.t * n.q, n.d) : 0;  // q's: the most
  return arena.take_bytes(std::max({kernels.attention_scratch_bytes(n.t, n.q, n.g, n.d),
                                    kernels.rmsnorm_scratch_bytes(n.t, n.h), heads}));
}

void carve_saved(ScratchArena& saved, const Dims& n, LayerForwardMemory& memory) {
  memory.attention = carve_attention(saved, n);
  memory.mlp = carve_mlp(saved, n);
  memory.x1_th = saved.take(n.dtype, {n.t, n.h});
}

void carve_attention_gradients(ScratchArena& scratch, const Dims& n, LayerBackwardMemory& memory) {
  memory.dout_tqd = scratch.take(n.dtype, {n.t, n.q, n.d});
  memory.dq_tqd = scratch.take(n.dtype, {n.t, n.q, n.d});
  memory.dk_tgd = scratch.take(n.dtype, {n.t, n.g, n.d});
  memory.dv_tgd = scratch.take(n.dtype, {n.t, n.g, n.d});
  memory.dprojected_tqd = memory.dout_tqd;
  memory.dprojected_tgd = {memory.dq_tqd.data, n.dtype, {n.t, n.g, n.d}};  // g <= q
}

}  // namespace

LayerForwardMemory carve_forward(ScratchArena& scratch, const Dims& n, const Kernels& kernels) {
  LayerForwardMemory memory;
  memory.kernel = carve_kernel(scratch, n, kernels);
  memory.attention = carve_attention(scratch, n);
  memory.mlp = carve_mlp(scratch, n);
  return memory;
}

LayerForwardMemory carve_keeping_forward(ScratchArena& scratch, ScratchArena& saved, const Dims& n,
                                         const Kernels& kernels) {
  LayerForwardMemory memory;
  memory.kernel = carve_kernel(scratch, n, kernels);
  carve_saved(saved, n, memory);
  return memory;
}

LayerBackwardMemory carve_backward(ScratchArena& scratch, const Dims& n, const Kernels& kernels) {
  LayerBackwardMemory memory;
  memory.forward.kernel = carve_kernel(scratch, n, kernels);
  memory.forward.x1_th = scratch.take(n.dtype, {n.t, n.h});
  memory.dnormed_th = scratch.take(n.dtype, {n.t, n.h});
  memory.forward.attention = carve_attention(scratch, n);
  const std::uint64_t shared = scratch.position();
  memory.forward.mlp = carve_mlp(scratch, n);
  // Each is written where the last reader of its place has just been.
  memory.dproduct_tf = memory.forward.mlp.product_tf;
  memory.dgate_tf = memory.forward.mlp.gate_tf;
  memory.dup_tf = memory.forward.mlp.up_tf;
  // The feed-forward half is through before the attention half's gradients begin.
  scratch.rewind(shared);
  carve_attention_gradients(scratch, n, memory);
  return memory;
}

LayerBackwardMemory carve_kept_backward(ScratchArena& scratch, ScratchArena& saved, const Dims& n,
                                        const Kernels& kernels) {
  LayerBackwardMemory memory;
  memory.forward.kernel = carve_kernel(scratch, n, kernels);
  carve_saved(saved, n, memory.forward);
  memory.dnormed_th = scratch.take(n.dtype, {n.t, n.h});
  const std::uint64_t shared = scratch.position();
  memory.dproduct_tf = scratch.take(n.dtype, {n.t, n.f});
  memory.dgate_tf = scratch.take(n.dtype, {n.t, n.f});
  memory.dup_tf = scratch.take(n.dtype, {n.t, n.f});
  scratch.rewind(shared);
  carve_attention_gradients(scratch, n, memory);
  return memory;
}

std::array<TensorView, 17> saved_values(const LayerForwardMemory& memory) {
  const AttentionValues& a = memory.attention;
  const MlpValues& m = memory.mlp;
  return {a.normed_th,
          a.rstd_t,
          a.query_norm.projected,
          a.query_norm.rstd,
          a.key_norm.projected,
          a.key_norm.rstd,
          a.q_tqd,
          a.k_tgd,
          a.v_tgd,
          a.out_tqd,
          a.lse_qt,
          m.normed_th,
          m.rstd_t,
          m.gate_tf,
          m.up_tf,
          m.product_tf,
          memory.x1_th};
}

}  // namespace strata
