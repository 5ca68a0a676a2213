#pragma once
// y_tn += bias_n, where the library's products cannot add it on the way: storage of two kinds.

#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {

template <class Y, class B>
STRATA_KERNEL(256)
add_bias_kernel(Global<Y> y_tn, Global<const B> bias_n, std::int64_t num_rows, std::int64_t n,
                bool aligned) {
  const std::int64_t row_spans = (n + group_elements - 1) / group_elements;
  const std::int64_t first = block_x() * block_threads() + thread_index();
  for (std::int64_t item = first; item < num_rows * row_spans; item += grid_x() * block_threads()) {
    const Span columns = span_at(item % row_spans * group_elements, n, aligned);
    Span span = columns;
    span.first += item / row_spans * n;
    Floats y = load_floats(y_tn, span);
    const Floats bias = load_floats(bias_n, columns);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) y[i] += bias[i];
    store_floats(y_tn, span, y);
  }
}

// --- Host

template <class Launcher>
void launch_add_bias(Launcher& launcher, const TensorView& y_tn, const TensorView& bias_n) {
  const std::int64_t t = y_tn.dim(0), n = y_tn.dim(1);
  ensure(bias_n.count() == n);
  const bool aligned = is_aligned(y_tn, n) && is_aligned(bias_n);
  const LaunchShape shape = strided_shape(t * ceil_div(n, group_elements), launcher.limits());
  with_float_type(y_tn.dtype, [&](auto to) {
    with_float_type(bias_n.dtype, [&](auto from) {
      using Y = decltype(to);
      using B = decltype(from);
      launcher.launch("add_bias", add_bias_kernel<Y, B>, shape, Global<Y>(y_tn),
                      Global<const B>(bias_n), t, n, aligned);
    });
  });
}

}  // namespace strata::cuda
