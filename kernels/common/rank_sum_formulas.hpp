#pragma once
// How a sum over ranks is taken, element by element: the type it is added in, and what it becomes.
// Constexpr, which lets the functions run on a device.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "strata/core/dtype.hpp"

namespace strata {

template <class T>
using RankSumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

constexpr double rank_term(double value) { return value; }
constexpr float rank_term(float value) { return value; }
constexpr float rank_term(bfloat16 value) { return to_float(value); }

// Which operand's NaN an addition hands on differs between processors: so it is always the same.
constexpr float plain_sum(float sum) {
  return sum == sum ? sum : std::bit_cast<float>(std::uint32_t{0x7fc00000});
}
constexpr double plain_sum(double sum) {
  return sum == sum ? sum : std::bit_cast<double>(std::uint64_t{0x7ff8000000000000});
}

// A bf16 sum is rounded here, once.
template <class T>
constexpr T finished_sum(RankSumOf<T> sum) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(plain_sum(sum));
  else
    return plain_sum(sum);
}

}  // namespace strata
