#pragma once
// Values that every rank can make for every rank, so that each knows what a collective must give:
// seeded, and of magnitudes so different that another order of summation gives other bits.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "strata/core/error.hpp"
#include "strata/core/tensor_view.hpp"
#include "strata/device/device.hpp"

namespace strata::testing {

// Work is done when it is waited for, so a collective that does not wait reads what was there
// before.
class LazyStream final : public Stream {
 public:
  void record(Event&) override {}
  void wait(Event&) override {}
  void synchronize() override {
    if (pending) std::exchange(pending, nullptr)();
  }
  std::function<void()> pending;
};

template <typename T>
constexpr DType dtype_of = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<bfloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

template <typename T>
TensorView view_of(std::vector<T>& values) {
  return {values.data(), dtype_of<T>, {static_cast<std::int64_t>(values.size())}};
}

inline double widened(double value) { return value; }
inline double widened(float value) { return static_cast<double>(value); }
inline double widened(bfloat16 value) { return static_cast<double>(to_float(value)); }

template <typename T>
T narrowed(double value) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return to_bfloat16(static_cast<float>(value));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(value));
  else
    return static_cast<T>(value);
}

inline double wild_value(std::mt19937_64& random) {
  const double mantissa = static_cast<double>(static_cast<std::int64_t>(random()) >> 11);
  return std::ldexp(mantissa, -53 + static_cast<int>(random() % 33) - 16);
}

// Infinities, NaN, denormals, zeros of both signs, and what overflows when it is added.
inline double special_value(std::mt19937_64& random) {
  static const std::vector<double> specials = {0.0,
                                               -0.0,
                                               1e-45,
                                               -1e-45,
                                               1e-40,
                                               -1e-40,
                                               1.1754944e-38,
                                               -1.1754944e-38,
                                               3.4e38,
                                               -3.4e38,
                                               5e-324,
                                               1.7e308,
                                               std::numeric_limits<double>::infinity(),
                                               -std::numeric_limits<double>::infinity(),
                                               std::numeric_limits<double>::quiet_NaN()};
  return specials[random() % specials.size()];
}

enum class ValueKind : std::uint8_t { wild, special };

template <typename T>
std::vector<T> values_of(int rank, std::size_t count, unsigned seed,
                         ValueKind kind = ValueKind::wild) {
  std::mt19937_64 random(seed * 1000 + static_cast<unsigned>(rank));
  std::vector<T> values(count);
  for (T& value : values) {
    const bool is_special = kind == ValueKind::special && random() % 2 == 0;
    value = narrowed<T>(is_special ? special_value(random) : wild_value(random));
  }
  return values;
}

// A sum that is no number is the positive quiet NaN without a payload, whoever brought which.
template <typename T>
T plain_sum(T sum) {
  return std::isnan(sum) ? std::numeric_limits<T>::quiet_NaN() : sum;
}

// The oracle: rank 0, 1, 2 ..., bf16 in f32 and rounded once. A lone rank's values are its sum.
template <typename T>
std::vector<T> sum_in_rank_order(int world, std::size_t count, unsigned seed,
                                 ValueKind kind = ValueKind::wild) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<T> result = values_of<T>(0, count, seed, kind);
  if (world == 1) return result;
  std::vector<Sum> sum(count);
  for (std::size_t i = 0; i < count; ++i) sum[i] = static_cast<Sum>(widened(result[i]));
  for (int rank = 1; rank < world; ++rank) {
    const std::vector<T> values = values_of<T>(rank, count, seed, kind);
    for (std::size_t i = 0; i < count; ++i) sum[i] += static_cast<Sum>(widened(values[i]));
  }
  for (std::size_t i = 0; i < count; ++i)
    result[i] = narrowed<T>(static_cast<double>(plain_sum(sum[i])));
  return result;
}

template <typename T>
::testing::AssertionResult same_bits(const T* left, const T* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(left + i, right + i, sizeof(T)) != 0)
      return ::testing::AssertionFailure() << "element " << i << " of " << count;
  }
  return ::testing::AssertionSuccess();
}

template <typename T>
::testing::AssertionResult same_bits(const std::vector<T>& left, const std::vector<T>& right) {
  if (left.size() != right.size())
    return ::testing::AssertionFailure() << left.size() << " and " << right.size() << " elements";
  return same_bits(left.data(), right.data(), left.size());
}

inline std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// For work on a thread, which an error would end the program from.
inline void expect_well(const std::function<void()>& work) {
  EXPECT_EQ(error_of(work), "no error");
}

}  // namespace strata::testing
