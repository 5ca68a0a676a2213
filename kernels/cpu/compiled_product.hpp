#pragma once
// A oneDNN matmul primitive for one shape, with the memory objects it is run on.
// Thread contract: an object belongs to one thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/matmul.hpp"

namespace strata::cpu {

// Everything about a product but its addresses.
struct ProductKey {
  explicit ProductKey(const Matmul& product);
  bool operator==(const ProductKey&) const = default;

  std::int64_t m, n, k;
  std::array<std::int64_t, 2> a_strides, b_strides;
  std::int64_t c_row_stride;
  DType operand_dtype, c_dtype;
  bool has_bias;
  Accumulate accumulate;
};

struct ProductKeyHash {
  std::size_t operator()(const ProductKey& key) const;
};

class CompiledProduct {
 public:
  explicit CompiledProduct(const ProductKey& key);  // Throws Error when oneDNN has no such product.

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  void run(const Matmul& product, std::byte* scratch, const dnnl::stream& stream);

 private:
  dnnl::matmul primitive_;
  dnnl::memory a_, b_, c_, bias_, scratch_;
  std::size_t scratch_bytes_ = 0;
};

const dnnl::engine& cpu_engine();

}  // namespace strata::cpu
