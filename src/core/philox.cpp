#include "strata/core/philox.hpp"

#include <cmath>
#include <numbers>

#include "strata/core/error.hpp"

namespace strata {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

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
