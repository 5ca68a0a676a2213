#include "attention_bench.hpp"

#include <cmath>

namespace strata {

TimedAttention time_attention(KernelTimer& timer, DType dtype, const AttentionSize& size) {
  const auto [t, num_heads, num_pairs, head_dim] = size;
  const auto heads = [&](std::int64_t count) { return timer.tensor(dtype, {t, count, head_dim}); };
  const BenchTensor q = heads(num_heads), k = heads(num_pairs), v = heads(num_pairs),
                    out = heads(num_heads), dout = heads(num_heads), dq = heads(num_heads),
                    dk = heads(num_pairs), dv = heads(num_pairs),
                    starts = timer.tensor(DType::i32, {t}, BenchValues::zeros),
                    lse = timer.tensor(DType::f32, {num_heads, t});
  const Slab scratch = timer.device().allocate(
      timer.kernels().attention_scratch_bytes(t, num_heads, num_pairs, head_dim));
  const AttentionArgs args{.q_tqd = q,
                           .k_tgd = k,
                           .v_tgd = v,
                           .document_start_t = starts,
                           .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
                           .out_tqd = out,
                           .lse_qt = lse,
                           .dout_tqd = dout,
                           .dq_tqd = dq,
                           .dk_tgd = dk,
                           .dv_tgd = dv,
                           .scratch = {scratch.data(), scratch.bytes()}};
  TimedAttention timed;
  timed.forward = timer.time([&](Kernels& on, Stream& s) { on.attention_forward(args, s); });
  timed.backward = timer.time([&](Kernels& on, Stream& s) { on.attention_backward(args, s); });
  return timed;
}

}  // namespace strata
