#pragma once
// The sizes of one micro-batch through one model, by the letters of kernels.hpp, and what a segment
// costs.

#include <cstdint>

#include "strata/core/dtype.hpp"

namespace strata {

struct Dims {
  std::int64_t t = 0;  // tokens of a micro-batch
  std::int64_t h = 0;  // hidden size
  std::int64_t q = 0;  // query heads
  std::int64_t g = 0;  // key/value heads
  std::int64_t d = 0;  // head_dim
  std::int64_t f = 0;  // feed-forward size
  std::int64_t v = 0;  // vocabulary
  DType dtype = DType::bf16;
  float epsilon = 1e-5f;
};

struct SegmentCost {
  std::uint64_t scratch_bytes = 0;
  double flops = 0;
};

// Multiplications and additions of an [m, k] by [k, n] product.
constexpr double product_flops(std::int64_t m, std::int64_t n, std::int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

}  // namespace strata
