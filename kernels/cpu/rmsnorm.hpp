#pragma once
// Root-mean-square normalisation, with the semantics of Kernels::rmsnorm_*.
// Thread contract: may be called from several threads at once.

#include <cstddef>
#include <span>

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void rmsnorm_forward(Parallel& parallel, TensorView x_th, TensorView w_h, float epsilon,
                     TensorView y_th, TensorView rstd_t);
void rmsnorm_backward(Parallel& parallel, TensorView dy_th, TensorView x_th, TensorView w_h,
                      TensorView rstd_t, TensorView dx_th, Accumulate accumulate_dx,
                      TensorView dw_h, std::span<std::byte> scratch);
std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h);

}  // namespace strata::cpu
