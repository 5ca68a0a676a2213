#pragma once
// Addition, conversion and sum of whole tensors, with the semantics of Kernels.
// Thread contract: may be called from several threads at once.

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void add(Parallel& parallel, TensorView a, TensorView b, TensorView out);
void cast(Parallel& parallel, TensorView source, TensorView target);
void sum(TensorView values_t, TensorView total);

}  // namespace strata::cpu
