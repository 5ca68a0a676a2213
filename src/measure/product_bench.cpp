#include "product_bench.hpp"

namespace strata {

double ProductSize::flops() const {
  return 2 * static_cast<double>(t) * static_cast<double>(k) * static_cast<double>(n);
}

ProductBench::ProductBench(KernelTimer& timer, DType dtype, const ProductSize& size)
    : timer_(timer),
      x_(timer.tensor(dtype, {size.t, size.k})),
      w_(timer.tensor(dtype, {size.n, size.k})),
      y_(timer.tensor(dtype, {size.t, size.n})) {}

TimedCall ProductBench::time(ProductPass pass) const {
  return timer_.time([&](Kernels& kernels, Stream& stream) {
    if (pass == ProductPass::forward)
      kernels.linear_forward(x_, w_, {}, y_, Accumulate::no, stream);
    if (pass == ProductPass::backward_input)
      kernels.linear_backward_input(y_, w_, x_, Accumulate::no, stream);
    if (pass == ProductPass::backward_weight)
      kernels.linear_backward_weight(y_, x_, w_, Accumulate::no, stream);
  });
}

}  // namespace strata
