#include "train/weight_elements.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "strata/core/error.hpp"

namespace strata {

void store_elements(std::span<const float> values, DType dtype, std::byte* target) {
  switch (dtype) {
    case DType::bf16:
      std::ranges::transform(values, reinterpret_cast<bfloat16*>(target), weight_to_bfloat16);
      break;
    case DType::u16:
      std::ranges::transform(values, reinterpret_cast<std::uint16_t*>(target), master_low_bits);
      break;
    default:
      ensure(dtype == DType::f32);
      std::memcpy(target, values.data(), values.size_bytes());
  }
}

void widen_elements(const std::byte* source, DType dtype, std::span<float> values) {
  if (dtype == DType::f32) {
    std::memcpy(values.data(), source, values.size_bytes());
    return;
  }
  ensure(dtype == DType::bf16);
  const auto* weights = reinterpret_cast<const bfloat16*>(source);
  std::transform(weights, weights + values.size(), values.begin(),
                 [](bfloat16 weight) { return to_float(weight); });
}

void join_low_bits(const std::byte* source, std::span<float> values) {
  const auto* low_bits = reinterpret_cast<const std::uint16_t*>(source);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = join_master(weight_to_bfloat16(values[i]), low_bits[i]);
}

}  // namespace strata
