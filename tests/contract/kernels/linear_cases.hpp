#pragma once
// Products of linear layers to hold an implementation to: sizes and storages, and what comes out,
// by plain loops in double.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {

struct LinearCase {
  std::int64_t t, k, n;
  DType storage, result;
  Accumulate accumulate;
};

inline std::string describe(const LinearCase& c) {
  return std::to_string(c.t) + " tokens, " + std::to_string(c.k) + " to " + std::to_string(c.n) +
         ", " + std::string(dtype_name(c.storage)) + " to " + std::string(dtype_name(c.result)) +
         (c.accumulate == Accumulate::yes ? ", added" : "");
}

// Sizes of one element, below and above one block, not multiples of any vector.
inline std::vector<LinearCase> linear_cases() {
  std::vector<LinearCase> cases;
  const std::array<std::array<std::int64_t, 3>, 8> sizes = {{{1, 1, 1},
                                                             {3, 5, 7},
                                                             {1, 64, 33},
                                                             {17, 32, 8},
                                                             {37, 50, 96},
                                                             {64, 130, 321},
                                                             {130, 48, 200},
                                                             {600, 18, 70}}};
  for (const auto& [t, k, n] : sizes) {
    for (Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
      cases.push_back({t, k, n, DType::f32, DType::f32, accumulate});
      cases.push_back({t, k, n, DType::bf16, DType::bf16, accumulate});
      cases.push_back({t, k, n, DType::bf16, DType::f32, accumulate});
    }
  }
  return cases;
}

// Element (row, column) of a row-major matrix, or of its transpose.
using Element = std::function<double(std::int64_t row, std::int64_t column)>;
inline Element rows_of(const Tensor& tensor) {
  return [&](std::int64_t i, std::int64_t j) { return tensor.at(i * tensor.view().dim(1) + j); };
}
inline Element columns_of(const Tensor& tensor) {
  return [&](std::int64_t i, std::int64_t j) { return tensor.at(j * tensor.view().dim(1) + i); };
}

// before (if added to) + a b.
inline Tensor product(const Element& a_mk, const Element& b_kn, std::int64_t depth,
                      const Tensor& before, Accumulate accumulate) {
  Tensor result(DType::f64, before.view().shape);
  const std::int64_t columns = before.view().dim(1);
  for (std::int64_t i = 0; i < before.count(); ++i) {
    double sum = accumulate == Accumulate::yes ? before.at(i) : 0.0;
    for (std::int64_t k = 0; k < depth; ++k) sum += a_mk(i / columns, k) * b_kn(k, i % columns);
    result.set(i, sum);
  }
  return result;
}

// What an output holds before: numbers if they are added to, else NaN.
inline Tensor linear_output(PhiloxStream& random, const LinearCase& c, Shape shape) {
  return c.accumulate == Accumulate::yes ? random_normal(random, c.result, shape)
                                         : Tensor(c.result, shape);
}

}  // namespace strata::testing
