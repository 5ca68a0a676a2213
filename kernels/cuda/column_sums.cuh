#pragma once
// Sums of a matrix's columns in fp32, in one fixed order: a block sums 64 columns; its 32 rows of
// threads each take every 32nd row, and their sums are added in order.

#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/launch_shape.hpp"

namespace strata::cuda {

inline constexpr int column_spans = 8, row_threads = 32;
inline constexpr int block_columns = column_spans * group_elements;
inline constexpr int column_sums_threads = column_spans * row_threads;
inline constexpr std::int64_t column_sums_shared_bytes =
    row_threads * block_columns * static_cast<std::int64_t>(sizeof(float));

template <class S>
STRATA_DEVICE Floats sum_rows(const Global<const S>& values, std::int64_t num_rows,
                              std::int64_t num_columns, std::int64_t column, bool aligned) {
  Floats total{};
  for (std::int64_t row = thread_index() / column_spans; row < num_rows; row += row_threads) {
    Span span = span_at(column, num_columns, aligned);
    span.first += row * num_columns;
    const Floats added = load_floats(values, span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) total[i] += added[i];
  }
  return total;
}

template <class S, class T>
STRATA_KERNEL(column_sums_threads)
column_sums_kernel(Global<const S> values, Global<T> sums, std::int64_t num_rows,
                   std::int64_t num_columns, bool aligned) {
  const Shared<float> partials(0, row_threads * block_columns);
  const int row = thread_index() / column_spans;
  const int column = thread_index() % column_spans * group_elements;
  partials.template store_group<group_elements>(
      row * block_columns + column,
      sum_rows(values, num_rows, num_columns, block_x() * block_columns + column, aligned));
  sync_threads();
  const std::int64_t mine = block_x() * block_columns + thread_index();
  if (thread_index() >= block_columns || mine >= num_columns) return;
  float total = 0;
  for (int i = 0; i < row_threads; ++i) total += partials.load(i * block_columns + thread_index());
  sums.store(mine, rounded<T>(total));
}

// --- Host

inline LaunchShape column_sums_shape(std::int64_t num_columns) {
  return {ceil_div(num_columns, block_columns), 1, column_sums_threads, column_sums_shared_bytes};
}

template <class S, class Launcher>
void launch_column_sums(Launcher& launcher, const Global<const S>& values, std::int64_t num_rows,
                        const TensorView& sums, bool aligned) {
  const std::int64_t num_columns = sums.count();
  with_float_type(sums.dtype, [&](auto element) {
    using T = decltype(element);
    launcher.launch("column_sums", column_sums_kernel<S, T>, column_sums_shape(num_columns), values,
                    Global<T>(sums), num_rows, num_columns, aligned);
  });
}

template <class Launcher>
void launch_bias_backward(Launcher& launcher, const TensorView& dy_tn, const TensorView& db_n) {
  ensure(dy_tn.shape.rank == 2 && db_n.count() == dy_tn.dim(1));
  with_float_type(dy_tn.dtype, [&](auto element) {
    using S = decltype(element);
    launch_column_sums<S>(launcher, Global<const S>(dy_tn), dy_tn.dim(0), db_n,
                          is_aligned(dy_tn, dy_tn.dim(1)));
  });
}

}  // namespace strata::cuda
