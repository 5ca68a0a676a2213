#pragma once
// Element types, and the bfloat16 conversions every engine must share.

#include <bit>
#include <cstdint>
#include <string_view>

namespace strata {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i32, u16, u8 };

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

// Working weights: round half up in magnitude bits, so that a split master (this and the 16 low
// bits) inverts exactly: u = ((hi - (lo >> 15)) << 16) | lo. See docs/design/numbers.md.
constexpr bfloat16 weight_to_bfloat16(float master) {
  return {static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(master) + 0x8000u) >> 16)};
}

float f16_to_float(std::uint16_t bits);

}  // namespace strata
