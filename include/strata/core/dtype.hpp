#pragma once
// Element types, and the bfloat16 conversions every engine must share. The 8-bit block format is in
// block_q8.hpp.

#include <bit>
#include <cstdint>
#include <string_view>

namespace strata {

enum class DType : std::uint8_t {
  f64,
  f32,
  bf16,
  f16,
  i32,
  u16,
  u8,
  q8,  // optimizer moments, 8 bits an element and a scale a block; a tile of them is one region
};

// Bytes of one element; of q8 without the scales, which storage_bytes() adds.
constexpr std::int64_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::u16:
      return 2;
    case DType::u8:
    case DType::q8:
      return 1;
  }
  return 0;
}
std::string_view dtype_name(DType dtype);  // "f32", "bf16" ...

// bfloat16 as stored: the high half of an fp32.
struct bfloat16 {
  std::uint16_t bits = 0;
  bool operator==(const bfloat16&) const = default;
};

constexpr float to_float(bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
constexpr float to_float(float value) { return value; }

// Activations and gradients: round to nearest even, as hardware does; NaN stays NaN.
constexpr bfloat16 to_bfloat16(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((u >> 16) | 0x40u)};
  return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// Up or down at random, `random` uniform in [0, 2^16): exact in the mean. NaN stays NaN.
constexpr bfloat16 to_bfloat16_stochastic(float value, std::uint32_t random) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {0x7fc0u};
  return {static_cast<std::uint16_t>((u + random) >> 16)};
}

// Working weights: round half up in magnitude bits, so that a split master (this and the 16 low
// bits) inverts exactly. See docs/design/numbers.md.
constexpr bfloat16 weight_to_bfloat16(float master) {
  return {static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(master) + 0x8000u) >> 16)};
}
// What a split master keeps beside its working weight.
constexpr std::uint16_t master_low_bits(float master) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(master) & 0xffffu);
}
constexpr float join_master(bfloat16 weight, std::uint16_t low_bits) {
  const std::uint32_t high = weight.bits - (static_cast<std::uint32_t>(low_bits) >> 15);
  return std::bit_cast<float>(high << 16 | low_bits);
}

float f16_to_float(std::uint16_t bits);

}  // namespace strata
