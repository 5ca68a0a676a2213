#pragma once
// The gated activation of a feed-forward block, with the semantics of Kernels::swiglu_*.
// Thread contract: may be called from several threads at once.

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void swiglu_forward(Parallel& parallel, TensorView gate_tf, TensorView up_tf, TensorView y_tf);
void swiglu_backward(Parallel& parallel, TensorView dy_tf, TensorView gate_tf, TensorView up_tf,
                     TensorView dgate_tf, TensorView dup_tf);

}  // namespace strata::cpu
