#pragma once
// One element of what is stored in fp32 or bf16. Thread contract: any thread.

#include <cstdint>

#include "strata/core/dtype.hpp"
#include "strata/core/error.hpp"
#include "strata/core/tensor_view.hpp"

namespace strata::ref {

inline float read_float(const TensorView& tensor, std::int64_t i) {
  ensure(tensor.dtype == DType::f32 || tensor.dtype == DType::bf16);
  return tensor.dtype == DType::f32 ? tensor.as<const float>()[i]
                                    : to_float(tensor.as<const bfloat16>()[i]);
}

}  // namespace strata::ref
