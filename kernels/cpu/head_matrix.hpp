#pragma once
// The tokens of one head of a [t, heads, head_dim] tensor as a matrix with one row per token.

#include "kernels/cpu/matmul.hpp"
#include "strata/core/tensor_view.hpp"

namespace strata::cpu {

inline std::int64_t token_stride(TensorView x_thd) { return x_thd.dim(1) * x_thd.dim(2); }

inline std::byte* head_data(TensorView x_thd, std::int64_t token, std::int64_t head) {
  const std::int64_t offset = token * token_stride(x_thd) + head * x_thd.dim(2);
  return x_thd.as<std::byte>() + offset * dtype_bytes(x_thd.dtype);
}

// Tokens `token`, `token` + 1, ...
inline Matrix head_matrix(TensorView x_thd, std::int64_t token, std::int64_t head) {
  return {head_data(x_thd, token, head), token_stride(x_thd), 1, x_thd.dtype};
}

inline Matrix transposed(const Matrix& matrix) {
  return {matrix.data, matrix.column_stride, matrix.row_stride, matrix.dtype};
}

}  // namespace strata::cpu
