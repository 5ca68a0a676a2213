#pragma once
// The reference ops, with the semantics of Kernels. One source file per noun; see doubles.hpp for
// how they compute. Thread contract: may be called from several threads at once.

#include <span>

#include "strata/kernels/kernels.hpp"

namespace strata::ref {

void embedding_forward(TensorView tokens_t, TensorView table_vh, TensorView out_th);
void embedding_backward(TensorView tokens_t, TensorView dout_th, TensorView dtable_vh);

void rmsnorm_forward(TensorView x_th, TensorView w_h, double epsilon, TensorView y_th,
                     TensorView rstd_t);
void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                      TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h);

void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                    Accumulate accumulate);
void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                           Accumulate accumulate);
void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                            Accumulate accumulate);
void bias_backward(TensorView dy_tn, TensorView db_n);

void rope(TensorView x_thd, TensorView document_start_t, std::span<const float> inverse_frequencies,
          Rotation rotation);

void attention_forward(const AttentionArgs& args);
void attention_backward(const AttentionArgs& args);

void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf);
void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                     TensorView dup_tf);

void cross_entropy(const CrossEntropyArgs& args);

void add(TensorView a, TensorView b, TensorView out);
void cast(TensorView source, TensorView target);
void sum(TensorView values_t, TensorView total);

// The exact family computes in fp32, as it must.
void cast_weight(TensorView master, TensorView weight);
void accumulate(TensorView source, TensorView target, Accumulate accumulate);
void square_sums(TensorView values, TensorView partials);
void update(const UpdateArgs& args);

}  // namespace strata::ref
