#pragma once
// Softmax cross-entropy over a chunk of tokens, with the semantics of Kernels::cross_entropy.
// Thread contract: may be called from several threads at once.

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void cross_entropy(Parallel& parallel, const CrossEntropyArgs& args);

}  // namespace strata::cpu
