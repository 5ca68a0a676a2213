// The column sums of Kernels::bias_backward, declared beside the other products of a linear layer.

#include <algorithm>

#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/bias_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

// Sums of this many rows are added up apart: the error grows with their number and the number of
// them, not with t.
constexpr std::int64_t sum_rows = 64;

template <class D, class T>
HWY_INLINE hn::Vec<D> column_sum(D d, const T* column, std::int64_t rows, std::int64_t stride) {
  auto total = hn::Zero(d);
  for (std::int64_t start = 0; start < rows; start += sum_rows) {
    auto sum = hn::Zero(d);
    const std::int64_t end = std::min(rows, start + sum_rows);
    for (std::int64_t row = start; row < end; ++row)
      sum = hn::Add(sum, load(d, column + row * stride));
    total = hn::Add(total, sum);
  }
  return total;
}

void column_sums(TensorView values, TensorView sums, std::int64_t begin, std::int64_t end) {
  with_element(values.dtype, [&](auto* source) HWY_ATTR {
    using S = std::remove_pointer_t<decltype(source)>;
    with_element(sums.dtype, [&](auto* target) HWY_ATTR {
      using T = std::remove_pointer_t<decltype(target)>;
      for_each_vector(begin, end, [&](auto d, std::int64_t column) HWY_ATTR {
        store(d, column_sum(d, values.as<const S>() + column, values.dim(0), values.dim(1)),
              sums.as<T>() + column);
      });
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(column_sums);

constexpr std::int64_t chunk_columns = 64;

}  // namespace

void bias_backward(Parallel& parallel, TensorView dy_tn, TensorView db_n) {
  ensure(dy_tn.shape.rank == 2 && db_n.count() == dy_tn.dim(1));
  parallel.for_chunks(dy_tn.dim(1), chunk_columns, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(column_sums)(dy_tn, db_n, begin, end);
  });
}

}  // namespace strata::cpu
#endif
