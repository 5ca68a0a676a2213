#pragma once
// Launch plans of attention, on tensor cores: bf16, heads of 64 or 128.

#include <span>

#include "kernels/cuda/attention_backward.cuh"
#include "kernels/cuda/attention_forward.cuh"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/reductions.cuh"
#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

inline std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q) {
  return scratch_bytes<float>(t * q);
}

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

template <class Launcher>
void launch_attention_forward(Launcher& launcher, const AttentionArgs& args) {
  check_attention(args);
  ensure(runs_on_tensor_cores(args));
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
void launch_attention_backward(Launcher& launcher, const AttentionArgs& args) {
  check_attention(args);
  check_attention_gradients(args);
  ensure(runs_on_tensor_cores(args));
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

}  // namespace strata::cuda
