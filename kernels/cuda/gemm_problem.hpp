#pragma once
// The three products of a linear layer as a BLAS library takes them: column by column. A row-major
// matrix is its own transpose there, so y_tn = x_tk w_nk^T becomes Y = op(W) X with Y of n x t.
// Plain host code, tested without a device.

#include <cstdint>

#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

enum class Transposed : std::uint8_t { no, yes };

struct GemmOperand {
  TensorView data;
  Transposed transposed = Transposed::no;
  std::int64_t stride = 0;  // from column to column, as stored
};

// c (m x n) = op(a) (m x k) op(b) (k x n), plus what c holds if asked.
struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  GemmOperand a, b, c;
  Accumulate accumulate = Accumulate::no;
};

inline void check_linear(const TensorView& input_tk, const TensorView& w_nk,
                         const TensorView& output_tn) {
  ensure(input_tk.dim(0) == output_tn.dim(0) && input_tk.dim(1) == w_nk.dim(1) &&
         output_tn.dim(1) == w_nk.dim(0));
}

// y_tn (+)= x_tk w_nk^T.
inline GemmProblem linear_forward_problem(const TensorView& x_tk, const TensorView& w_nk,
                                          const TensorView& y_tn, Accumulate accumulate) {
  check_linear(x_tk, w_nk, y_tn);
  const std::int64_t t = x_tk.dim(0), k = x_tk.dim(1), n = w_nk.dim(0);
  return {.m = n,
          .n = t,
          .k = k,
          .a = {w_nk, Transposed::yes, k},
          .b = {x_tk, Transposed::no, k},
          .c = {y_tn, Transposed::no, n},
          .accumulate = accumulate};
}

// dx_tk (+)= dy_tn w_nk.
inline GemmProblem linear_input_problem(const TensorView& dy_tn, const TensorView& w_nk,
                                        const TensorView& dx_tk, Accumulate accumulate) {
  check_linear(dx_tk, w_nk, dy_tn);
  const std::int64_t t = dx_tk.dim(0), k = dx_tk.dim(1), n = w_nk.dim(0);
  return {.m = k,
          .n = t,
          .k = n,
          .a = {w_nk, Transposed::no, k},
          .b = {dy_tn, Transposed::no, n},
          .c = {dx_tk, Transposed::no, k},
          .accumulate = accumulate};
}

// dw_nk (+)= dy_tn^T x_tk.
inline GemmProblem linear_weight_problem(const TensorView& dy_tn, const TensorView& x_tk,
                                         const TensorView& dw_nk, Accumulate accumulate) {
  check_linear(x_tk, dw_nk, dy_tn);
  const std::int64_t t = x_tk.dim(0), k = x_tk.dim(1), n = dw_nk.dim(0);
  return {.m = k,
          .n = n,
          .k = t,
          .a = {x_tk, Transposed::no, k},
          .b = {dy_tn, Transposed::yes, n},
          .c = {dw_nk, Transposed::no, k},
          .accumulate = accumulate};
}

}  // namespace strata::cuda
