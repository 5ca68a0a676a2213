#pragma once
// Elements of the three weight types to and from fp32.

#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/core/dtype.hpp"

namespace strata {

// Round to nearest even; overflow gives infinity, NaN stays NaN.
std::uint16_t float_to_f16(float value);

// `dtype` is f32, f16 or bf16, and both spans hold as many elements. The bytes need no alignment.
void to_f32(std::span<const std::byte> source, DType dtype, std::span<float> target);
void from_f32(std::span<const float> source, DType dtype, std::span<std::byte> target);

}  // namespace strata
