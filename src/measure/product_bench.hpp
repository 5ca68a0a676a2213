#pragma once
// Times the products of a linear layer: forward, and both of backward. Thread contract: one thread.

#include <cstdint>

#include "kernel_timer.hpp"

namespace strata {

// t tokens, k inputs, n outputs.
struct ProductSize {
  std::int64_t t = 0, k = 0, n = 0;
  double flops() const;
};

enum class ProductPass : std::uint8_t { forward, backward_input, backward_weight };

class ProductBench {
 public:
  // Throws OutOfMemory. The timer must outlive it.
  ProductBench(KernelTimer& timer, DType dtype, const ProductSize& size);
  TimedCall time(ProductPass pass) const;

 private:
  KernelTimer& timer_;
  BenchTensor x_, w_, y_;
};

}  // namespace strata
