#pragma once
// Causal, document-aware, grouped-query attention with the semantics of Kernels::attention_*: tiles
// of scores, never the whole matrix. Results depend on neither thread count nor scheduling. Thread
// contract: may be called from several threads at once.

#include <cstdint>

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void attention_forward(Parallel& parallel, const AttentionArgs& args);
void attention_backward(Parallel& parallel, const AttentionArgs& args);
std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q, std::int64_t g,
                                      std::int64_t d);

}  // namespace strata::cpu
