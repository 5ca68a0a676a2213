#pragma once
// Elements of weights and masters to and from fp32, as tiles hold them.

#include <cstddef>
#include <span>

#include "strata/core/dtype.hpp"

namespace strata {

// As a weight (f32, bf16) or a master (f32, u16: the low bits of a split one) holds them.
void store_elements(std::span<const float> values, DType dtype, std::byte* target);
// The reverse, of f32 and bf16.
void widen_elements(const std::byte* source, DType dtype, std::span<float> values);
// `values` are the weights of a split master, `source` its low bits; turns them into the master.
void join_low_bits(const std::byte* source, std::span<float> values);

}  // namespace strata
