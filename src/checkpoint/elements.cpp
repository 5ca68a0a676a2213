#include "elements.hpp"

#include <bit>
#include <cstring>

#include "strata/core/error.hpp"

namespace strata {
namespace {

template <typename Stored, typename Convert>
void load_each(std::span<const std::byte> source, std::span<float> target, Convert convert) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, source.data() + i * sizeof(Stored), sizeof(Stored));
    target[i] = convert(stored);
  }
}

template <typename Stored, typename Convert>
void store_each(std::span<const float> source, std::span<std::byte> target, Convert convert) {
  for (std::size_t i = 0; i < source.size(); ++i) {
    const Stored stored = convert(source[i]);
    std::memcpy(target.data() + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

bool same_count(std::size_t bytes, DType dtype, std::size_t count) {
  return bytes == count * static_cast<std::size_t>(dtype_bytes(dtype));
}

// The value of |u| below f16's normal range (2^-14) as a count of its smallest step, 2^-24.
std::uint32_t subnormal_f16(std::uint32_t magnitude) {
  // Adding 0.5 aligns the step 2^-24 with the last mantissa bit, so the addition rounds to nearest
  // even.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
}

std::uint32_t magnitude_f16(std::uint32_t magnitude) {
  constexpr std::uint32_t infinity_f32 = 0x7f800000u, overflow = 0x47800000u;  // 2^16
  constexpr std::uint32_t normal_min = 0x38800000u;                            // 2^-14
  constexpr std::uint32_t rebias = (127u - 15u) << 23;
  if (magnitude > infinity_f32) return 0x7e00u;
  if (magnitude >= overflow) return 0x7c00u;
  if (magnitude < normal_min) return subnormal_f16(magnitude);
  return (magnitude - rebias + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
}

}  // namespace

std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>(((bits >> 16) & 0x8000u) | magnitude_f16(bits & 0x7fffffffu));
}

void to_f32(std::span<const std::byte> source, DType dtype, std::span<float> target) {
  ensure(same_count(source.size(), dtype, target.size()));
  switch (dtype) {
    case DType::f32:
      return load_each<float>(source, target, [](float v) { return v; });
    case DType::f16:
      return load_each<std::uint16_t>(source, target, f16_to_float);
    case DType::bf16:
      return load_each<bfloat16>(source, target, [](bfloat16 v) { return to_float(v); });
    default:
      ensure(false);
  }
}

void from_f32(std::span<const float> source, DType dtype, std::span<std::byte> target) {
  ensure(same_count(target.size(), dtype, source.size()));
  switch (dtype) {
    case DType::f32:
      return store_each<float>(source, target, [](float v) { return v; });
    case DType::f16:
      return store_each<std::uint16_t>(source, target, float_to_f16);
    case DType::bf16:
      return store_each<bfloat16>(source, target, to_bfloat16);
    default:
      ensure(false);
  }
}

}  // namespace strata
