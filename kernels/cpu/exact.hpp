#pragma once
// The element-wise ops of the exact family, with the semantics of Kernels: same bits on every
// target. Thread contract: may be called from several threads at once.

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void cast_weight(Parallel& parallel, TensorView master, TensorView weight);
void accumulate(Parallel& parallel, TensorView source, TensorView target, Accumulate accumulate);
void square_sums(Parallel& parallel, TensorView values, TensorView partials);

}  // namespace strata::cpu
