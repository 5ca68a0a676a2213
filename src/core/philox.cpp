#include "strata/core/philox.hpp"

#include <cmath>
#include <numbers>

#include "strata/core/error.hpp"

namespace strata {

std::uint32_t PhiloxStream::next_u32() {
  if (left_ == 0) {
    block_ = philox4x32(
        {static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32),
         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    ++counter_;
    left_ = 4;
  }
  return block_[4 - left_--];
}

std::uint64_t PhiloxStream::next_u64() {
  const std::uint64_t low = next_u32();
  return low | (std::uint64_t{next_u32()} << 32);
}

double PhiloxStream::next_uniform() { return static_cast<double>(next_u64() >> 11) * 0x1.0p-53; }

double PhiloxStream::next_normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - next_uniform()));  // 1 - u lies in (0, 1].
  return radius * std::cos(2.0 * std::numbers::pi * next_uniform());
}

std::uint64_t PhiloxStream::next_below(std::uint64_t bound) {
  ensure(bound > 0);
  const std::uint64_t unfair =
      (0 - bound) % bound;  // 2^64 mod bound: values below it would be too likely.
  for (;;) {
    const std::uint64_t value = next_u64();
    if (value >= unfair) return value % bound;
  }
}

}  // namespace strata
