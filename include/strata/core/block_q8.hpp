#pragma once
// The 8-bit block format of optimizer moments (DType::q8): blocks of 256 elements, one code byte an
// element and one fp32 scale a block. A region of n elements holds its codes, padding to 64 bytes,
// then its scales.
//
// The map is that of a mu-law codec: 8 steps an octave near the block's largest value, evenly
// spaced near zero. With t = |value| / scale + 2, the code is the exponent and the first three
// mantissa bits of t, counted from t = 2; so encoding is an addition and a shift. The scale is a
// power of two: a changed largest value then moves no other value off the grid it lies on.
//
//   moment1: a sign and 16 octaves. The smallest step is 2^-18 of the largest value's power of two.
//   moment2: 32 octaves, the smallest step 2^-34. A positive value never becomes zero: an element
//            whose moment1 is not zero would otherwise be divided by epsilon alone.
//
// Values are rounded up or down at random, exact in the mean: decay by beta2 = 0.999 changes a
// value by less than a step, and rounding to nearest would undo it every time.
//
// Pure functions; any thread. This is also what the engines' kernels are tested against.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "strata/core/bytes.hpp"
#include "strata/core/dtype.hpp"

namespace strata {

inline constexpr std::int64_t q8_block_elements = 256;
inline constexpr int q8_signed_octaves = 16, q8_unsigned_octaves = 32;

constexpr std::int64_t q8_num_blocks(std::int64_t count) {
  return ceil_div(count, q8_block_elements);
}
// Bytes from the first code to the first scale.
constexpr std::int64_t q8_scales_begin(std::int64_t count) { return ceil_div(count, 64) * 64; }

// Bytes of `count` consecutive elements of one region.
constexpr std::int64_t storage_bytes(DType dtype, std::int64_t count) {
  if (dtype != DType::q8) return count * dtype_bytes(dtype);
  return q8_scales_begin(count) + q8_num_blocks(count) * static_cast<std::int64_t>(sizeof(float));
}

// The scale of a block whose largest magnitude has these bits. Zero for zeros; NaN if a value is
// not finite, so that the whole block says so.
constexpr float q8_scale(std::uint32_t largest_bits, int octaves) {
  if (largest_bits == 0) return 0;
  if (largest_bits >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
  // Largest values from 1.75 times a power of two on count as the next: rounding up stays in range.
  const auto exponent = static_cast<int>((largest_bits + 0x200000u) >> 23);
  return std::bit_cast<float>(static_cast<std::uint32_t>(std::max(1, exponent - octaves)) << 23);
}
// 1 / scale, exactly; 0 where the scale is zero or NaN: all codes are those of zero then.
constexpr float q8_inverse_scale(float scale) {
  if (!(scale > 0)) return 0;
  return std::bit_cast<float>(0x7f000000u - std::bit_cast<std::uint32_t>(scale));
}

// The code of a magnitude, before signs and floors; `random` is uniform in [0, 2^20).
constexpr std::uint32_t q8_magnitude_code(float magnitude, float inverse_scale,
                                          std::uint32_t random) {
  const float t = magnitude * inverse_scale + 2;
  return ((std::bit_cast<std::uint32_t>(t) + random) >> 20) & 0xffu;
}
constexpr float q8_magnitude(std::uint32_t code, float scale) {
  return (std::bit_cast<float>(0x40000000u | code << 20) - 2) * scale;
}

constexpr std::uint8_t q8_encode_signed(float value, float inverse_scale, std::uint32_t random) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (inverse_scale == 0) return 0;
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffffu);
  return static_cast<std::uint8_t>(q8_magnitude_code(magnitude, inverse_scale, random) |
                                   bits >> 31 << 7);
}
constexpr float q8_decode_signed(std::uint8_t code, float scale) {
  const float magnitude = q8_magnitude(code & 0x7fu, scale);
  return code >= 0x80u ? -magnitude : magnitude;
}

constexpr std::uint8_t q8_encode_unsigned(float value, float inverse_scale, std::uint32_t random) {
  if (inverse_scale == 0) return 0;
  const std::uint32_t floor = value > 0 ? 1 : 0;
  return static_cast<std::uint8_t>(
      std::max(floor, q8_magnitude_code(value, inverse_scale, random)));
}
constexpr float q8_decode_unsigned(std::uint8_t code, float scale) {
  return q8_magnitude(code, scale);
}

}  // namespace strata
