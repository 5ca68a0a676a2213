#pragma once
// Launch plans of attention: on tensor cores for bf16 and heads of 64 or 128, plain for the rest.

#include <span>

#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/attention_forward.cuh"
#include "kernels/cuda/attention_plain.cuh"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/reductions.cuh"
#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

inline void check_attention(const AttentionArgs& args) {
  const std::int64_t t = args.q_tqd.dim(0), q = args.q_tqd.dim(1), g = args.k_tgd.dim(1);
  const Shape keys{t, g, args.q_tqd.dim(2)};
  ensure(args.q_tqd.shape.rank == 3 && g > 0 && q % g == 0 && t < INT32_MAX - tile_tokens);
  ensure(args.k_tgd.shape == keys && args.v_tgd.shape == keys &&
         args.out_tqd.shape == args.q_tqd.shape);
  ensure(args.document_start_t.dtype == DType::i32 && args.document_start_t.count() == t);
  ensure(args.lse_qt.dtype == DType::f32 && args.lse_qt.count() == q * t);
  for (const TensorView& like : {args.k_tgd, args.v_tgd, args.out_tqd})
    ensure(like.dtype == args.q_tqd.dtype);
}

inline void check_attention_gradients(const AttentionArgs& args) {
  ensure(args.dout_tqd.shape == args.q_tqd.shape && args.dq_tqd.shape == args.q_tqd.shape);
  ensure(args.dk_tgd.shape == args.k_tgd.shape && args.dv_tgd.shape == args.v_tgd.shape);
  for (const TensorView& like : {args.dout_tqd, args.dq_tqd, args.dk_tgd, args.dv_tgd})
    ensure(like.dtype == args.q_tqd.dtype);
}

inline bool runs_on_tensor_cores(const AttentionArgs& args) {
  const std::int64_t d = args.q_tqd.dim(2);
  bool aligned = true;
  for (const TensorView& view : {args.q_tqd, args.k_tgd, args.v_tgd, args.out_tqd, args.dout_tqd,
                                 args.dq_tqd, args.dk_tgd, args.dv_tgd})
    aligned = aligned && is_aligned(view, d);
  return aligned && args.q_tqd.dtype == DType::bf16 && (d == 64 || d == 128);
}

// Calls f with the head's size as a constant.
template <class F>
void with_head_dim(std::int64_t d, F f) {
  ensure(d == 64 || d == 128);
  if (d == 64) return f(std::integral_constant<int, 64>{});
  f(std::integral_constant<int, 128>{});
}

template <int d>
LaunchShape attention_forward_shape(std::int64_t t, std::int64_t q) {
  return {ceil_div(t, tile_tokens), q, attention_threads, 3 * Tile<d>::bytes(tile_tokens)};
}
template <int d>
LaunchShape attention_dq_shape(std::int64_t t, std::int64_t q) {
  return {ceil_div(t, tile_tokens), q, attention_threads, 4 * Tile<d>::bytes(tile_tokens)};
}
template <int d>
LaunchShape attention_dkv_shape(std::int64_t t, std::int64_t g) {
  return {ceil_div(t, tile_tokens), g, attention_threads, KeyBlockTiles<d>::bytes};
}
template <int d>
LaunchShape attention_delta_shape(std::int64_t t, std::int64_t q) {
  return {.grid_x = ceil_div(t * q, delta_threads / (d / 8)), .threads = delta_threads};
}

// --- On tensor cores

template <class Launcher>
void launch_tiled_forward(Launcher& launcher, const AttentionArgs& args) {
  const std::int64_t t = args.q_tqd.dim(0), q = args.q_tqd.dim(1), g = args.k_tgd.dim(1);
  const AttentionForward forward{Global<const bfloat16>(args.q_tqd),
                                 Global<const bfloat16>(args.k_tgd),
                                 Global<const bfloat16>(args.v_tgd),
                                 Global<const std::int32_t>(args.document_start_t),
                                 Global<bfloat16>(args.out_tqd),
                                 Global<float>(args.lse_qt),
                                 static_cast<int>(t),
                                 static_cast<int>(q),
                                 static_cast<int>(g),
                                 args.scale};
  with_head_dim(args.q_tqd.dim(2), [&](auto d) {
    launcher.launch("attention_forward", attention_forward_kernel<d()>,
                    attention_forward_shape<d()>(t, q), forward);
  });
}

inline AttentionBackward backward_of(const AttentionArgs& args) {
  const std::int64_t t = args.q_tqd.dim(0), q = args.q_tqd.dim(1);
  return {Global<const bfloat16>(args.q_tqd),
          Global<const bfloat16>(args.k_tgd),
          Global<const bfloat16>(args.v_tgd),
          Global<const bfloat16>(args.out_tqd),
          Global<const bfloat16>(args.dout_tqd),
          Global<const std::int32_t>(args.document_start_t),
          Global<const float>(args.lse_qt),
          scratch_array<float>(args.scratch, t * q),
          Global<bfloat16>(args.dq_tqd),
          Global<bfloat16>(args.dk_tgd),
          Global<bfloat16>(args.dv_tgd),
          static_cast<int>(t),
          static_cast<int>(q),
          static_cast<int>(args.k_tgd.dim(1)),
          args.scale};
}

template <class Launcher>
void launch_tiled_backward(Launcher& launcher, const AttentionArgs& args) {
  const std::int64_t t = args.q_tqd.dim(0), q = args.q_tqd.dim(1), g = args.k_tgd.dim(1);
  const AttentionBackward backward = backward_of(args);
  with_head_dim(args.q_tqd.dim(2), [&](auto d) {
    launcher.launch("attention_delta", attention_delta_kernel<d()>,
                    attention_delta_shape<d()>(t, q), backward);
    launcher.launch("attention_dq", attention_dq_kernel<d()>, attention_dq_shape<d()>(t, q),
                    backward);
    launcher.launch("attention_dkv", attention_dkv_kernel<d()>, attention_dkv_shape<d()>(t, g),
                    backward);
  });
}

// --- Plain

inline LaunchShape plain_attention_shape(std::int64_t t, std::int64_t heads) {
  return {ceil_div(t, plain_warps), heads, plain_threads, 0};
}

template <class T>
PlainAttention<T> plain_forward_of(const AttentionArgs& args) {
  PlainAttention<T> plain{};
  plain.q_tqd = Global<const T>(args.q_tqd);
  plain.k_tgd = Global<const T>(args.k_tgd);
  plain.v_tgd = Global<const T>(args.v_tgd);
  plain.out_tqd = Global<T>(args.out_tqd);
  plain.starts = Global<const std::int32_t>(args.document_start_t);
  plain.lse_qt = Global<float>(args.lse_qt);
  plain.num_tokens = args.q_tqd.dim(0);
  plain.query_heads = args.q_tqd.dim(1);
  plain.key_heads = args.k_tgd.dim(1);
  plain.d = args.q_tqd.dim(2);
  plain.scale = args.scale;
  return plain;
}

template <class T>
PlainAttention<T> plain_backward_of(const AttentionArgs& args) {
  PlainAttention<T> plain = plain_forward_of<T>(args);
  plain.dout_tqd = Global<const T>(args.dout_tqd);
  plain.delta_qt = scratch_array<float>(args.scratch, args.lse_qt.count());
  plain.dq_tqd = Global<T>(args.dq_tqd);
  plain.dk_tgd = Global<T>(args.dk_tgd);
  plain.dv_tgd = Global<T>(args.dv_tgd);
  return plain;
}

template <class Launcher>
void launch_plain_forward(Launcher& launcher, const AttentionArgs& args) {
  ensure(args.q_tqd.dim(2) <= plain_head_max);
  with_float_type(args.q_tqd.dtype, [&](auto element) {
    using T = decltype(element);
    launcher.launch("attention_forward", plain_attention_forward_kernel<T>,
                    plain_attention_shape(args.q_tqd.dim(0), args.q_tqd.dim(1)),
                    plain_forward_of<T>(args));
  });
}

template <class Launcher>
void launch_plain_backward(Launcher& launcher, const AttentionArgs& args) {
  ensure(args.q_tqd.dim(2) <= plain_head_max);
  const std::int64_t t = args.q_tqd.dim(0);
  with_float_type(args.q_tqd.dtype, [&](auto element) {
    using T = decltype(element);
    const PlainAttention<T> plain = plain_backward_of<T>(args);
    launcher.launch("attention_dq", plain_attention_dq_kernel<T>,
                    plain_attention_shape(t, plain.query_heads), plain);
    launcher.launch("attention_dkv", plain_attention_dkv_kernel<T>,
                    plain_attention_shape(t, plain.key_heads), plain);
  });
}

// --- Either

template <class Launcher>
void launch_attention_forward(Launcher& launcher, const AttentionArgs& args) {
  check_attention(args);
  if (runs_on_tensor_cores(args)) return launch_tiled_forward(launcher, args);
  launch_plain_forward(launcher, args);
}

template <class Launcher>
void launch_attention_backward(Launcher& launcher, const AttentionArgs& args) {
  check_attention(args);
  check_attention_gradients(args);
  if (runs_on_tensor_cores(args)) return launch_tiled_backward(launcher, args);
  launch_plain_backward(launcher, args);
}

}  // namespace strata::cuda
