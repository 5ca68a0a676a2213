#pragma once
// The matrix products of a linear layer on oneDNN, with the semantics of Kernels::linear_* and
// Kernels::bias_backward.
//
// oneDNN runs on one thread at a time: the output is cut into blocks fixed by the shape alone
// (never along the summed dimension), each block is one task of `parallel`, so a result depends on
// neither thread count nor scheduling. bf16 is multiplied natively where the processor can, else
// widened to fp32 block by block.
//
// Thread contract: may be called from several threads at once.

#include "strata/core/tensor_view.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void linear_forward(Parallel& parallel, TensorView x_tk, TensorView w_nk, TensorView bias_n,
                    TensorView y_tn, Accumulate accumulate);
void linear_backward_input(Parallel& parallel, TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                           Accumulate accumulate);
void linear_backward_weight(Parallel& parallel, TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                            Accumulate accumulate);
void bias_backward(Parallel& parallel, TensorView dy_tn, TensorView db_n);

}  // namespace strata::cpu
