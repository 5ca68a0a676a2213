#pragma once
// Times causal attention over one document. Thread contract: one thread.

#include <cstdint>

#include "kernel_timer.hpp"

namespace strata {

struct AttentionSize {
  std::int64_t tokens = 0, heads = 0, pair_heads = 0, head_dim = 0;  // pairs: keys and values
};

// FLOPs count the causal half of each product: 2 products forward, 5 backward. With t tokens, q
// heads of d that is 2 t^2 q d and 5 t^2 q d.
struct TimedAttention {
  TimedCall forward, backward;
};

TimedAttention time_attention(KernelTimer& timer, DType dtype, const AttentionSize& size);

}  // namespace strata
