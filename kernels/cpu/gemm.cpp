#include "kernels/cpu/gemm.hpp"

#include <algorithm>

#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/parallel.hpp"
#include "strata/core/bytes.hpp"

namespace strata::cpu {
namespace {

// The output is cut into rows x columns blocks, by its shape alone.
struct Blocks {
  std::int64_t rows, columns;
};

// The operand that a block does not share with its neighbours along the wide axis is packed anew
// for each of them: that axis is cut into few blocks. The narrow axis is cut so that threads find
// enough blocks, none too small to run near the processor's peak. Measured: below 192 a block loses
// up to a tenth, from 192 to 768 it gains a twentieth.
constexpr std::int64_t narrow_block_min = 192;
constexpr std::int64_t narrow_block_max = 768;
constexpr std::int64_t narrow_blocks_wanted = 12;
constexpr std::int64_t wide_block_max = 768;

// The size of each of `blocks` near-equal blocks.
std::int64_t block_size(std::int64_t count, std::int64_t blocks) {
  return static_cast<std::int64_t>(
      align_up(static_cast<std::uint64_t>(ceil_div(count, blocks)), 16));
}

// An even number of blocks, so that an even number of threads shares them equally.
std::int64_t narrow_block(std::int64_t count) {
  if (count < 64) return count;
  const std::int64_t target =
      std::clamp(count / narrow_blocks_wanted, narrow_block_min, narrow_block_max);
  return block_size(count, std::max<std::int64_t>(1, (count + target) / (2 * target)) * 2);
}

std::int64_t wide_block(std::int64_t count) {
  return block_size(count, std::max<std::int64_t>(1, ceil_div(count, wide_block_max)));
}

const std::byte* offset(const Matrix& matrix, std::int64_t row, std::int64_t column) {
  return static_cast<const std::byte*>(matrix.data) +
         (row * matrix.row_stride + column * matrix.column_stride) * dtype_bytes(matrix.dtype);
}

// The product of the block that starts at (row, column).
Matmul block_of(const Matmul& whole, const Blocks& blocks, std::int64_t row, std::int64_t column) {
  Matmul part = whole;
  part.m = std::min(blocks.rows, whole.m - row);
  part.n = std::min(blocks.columns, whole.n - column);
  part.a_mk.data = offset(whole.a_mk, row, 0);
  part.b_kn.data = offset(whole.b_kn, 0, column);
  part.c_mn = static_cast<std::byte*>(whole.c_mn) +
              (row * whole.c_row_stride + column) * dtype_bytes(whole.c_dtype);
  if (whole.bias_n != nullptr) {
    part.bias_n =
        static_cast<const std::byte*>(whole.bias_n) + column * dtype_bytes(whole.a_mk.dtype);
  }
  return part;
}

void multiply_blocks(Parallel& parallel, const Matmul& whole, const Blocks& blocks) {
  if (whole.m == 0 || whole.n == 0) return;
  const std::int64_t num_columns = ceil_div(whole.n, blocks.columns);
  const std::int64_t num_rows = ceil_div(whole.m, blocks.rows);
  parallel.for_each(num_rows * num_columns, [&](std::int64_t block) {
    const std::int64_t row = block / num_columns * blocks.rows;
    matmul(block_of(whole, blocks, row, block % num_columns * blocks.columns));
  });
}

Matrix by_rows(TensorView view) { return {view.data, view.dim(1), 1, view.dtype}; }
Matrix transposed(TensorView view) { return {view.data, 1, view.dim(1), view.dtype}; }

// c_mn (+)= a_mk b_kn.
Matmul product(std::int64_t k, const Matrix& a_mk, const Matrix& b_kn, TensorView c_mn,
               Accumulate accumulate) {
  ensure(a_mk.dtype == b_kn.dtype && (c_mn.dtype == a_mk.dtype || c_mn.dtype == DType::f32));
  return {.m = c_mn.dim(0),
          .n = c_mn.dim(1),
          .k = k,
          .a_mk = a_mk,
          .b_kn = b_kn,
          .c_mn = c_mn.data,
          .c_row_stride = c_mn.dim(1),
          .c_dtype = c_mn.dtype,
          .accumulate = accumulate};
}

void ensure_shapes(TensorView tokens_by_inputs, TensorView weights, TensorView tokens_by_outputs) {
  ensure(tokens_by_inputs.shape.rank == 2 && weights.shape.rank == 2 &&
         tokens_by_outputs.shape.rank == 2);
  ensure(tokens_by_inputs.dim(0) == tokens_by_outputs.dim(0));
  ensure(weights.dim(1) == tokens_by_inputs.dim(1) && weights.dim(0) == tokens_by_outputs.dim(1));
}

}  // namespace

void linear_forward(Parallel& parallel, TensorView x_tk, TensorView w_nk, TensorView bias_n,
                    TensorView y_tn, Accumulate accumulate) {
  ensure_shapes(x_tk, w_nk, y_tn);
  ensure(bias_n.empty() || (bias_n.count() == w_nk.dim(0) && bias_n.dtype == w_nk.dtype));
  Matmul whole = product(x_tk.dim(1), by_rows(x_tk), transposed(w_nk), y_tn, accumulate);
  whole.bias_n = bias_n.data;
  multiply_blocks(parallel, whole, {wide_block(whole.m), narrow_block(whole.n)});
}

void linear_backward_input(Parallel& parallel, TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                           Accumulate accumulate) {
  ensure_shapes(dx_tk, w_nk, dy_tn);
  const Matmul whole = product(dy_tn.dim(1), by_rows(dy_tn), by_rows(w_nk), dx_tk, accumulate);
  multiply_blocks(parallel, whole, {wide_block(whole.m), narrow_block(whole.n)});
}

void linear_backward_weight(Parallel& parallel, TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                            Accumulate accumulate) {
  ensure_shapes(x_tk, dw_nk, dy_tn);
  const Matmul whole = product(dy_tn.dim(0), transposed(dy_tn), by_rows(x_tk), dw_nk, accumulate);
  multiply_blocks(parallel, whole, {narrow_block(whole.m), wide_block(whole.n)});
}

}  // namespace strata::cpu
