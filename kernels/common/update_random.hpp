#pragma once
// The random bits of stochastic rounding: 32 an element, a pure function of (seed, shard, step,
// element). Philox keys each chunk of 4096 elements; within a chunk a short integer hash of key and
// position does, as it is paid for every element. One element's bits in different steps are as
// independent as Philox's keys are; those of neighbours in one step need only look so.

#include <array>
#include <cstdint>

#include "strata/core/philox.hpp"
#include "strata/kernels/update.hpp"

namespace strata {

inline constexpr std::int64_t random_chunk_elements = 4096;
inline constexpr std::uint32_t random_stride = 0x9E3779B9u;
inline constexpr std::uint32_t random_factor = 0x7FEB352Du;

// The key of every chunk of one shard in one step.
class UpdateRandom {
 public:
  explicit UpdateRandom(const UpdateArgs& args) {
    const auto step = static_cast<std::uint64_t>(args.step);
    const auto block = philox4x32({low(step), high(step), low(args.shard), high(args.shard)},
                                  {low(args.seed), high(args.seed)});
    key_ = {block[0], block[1]};
  }
  constexpr std::uint32_t chunk_key(std::int64_t chunk) const {
    const auto number = static_cast<std::uint64_t>(chunk);
    return philox4x32({low(number), high(number), 0, 0}, key_)[0];
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t value) {
    return static_cast<std::uint32_t>(value);
  }
  static constexpr std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32);
  }
  std::array<std::uint32_t, 2> key_;
};

constexpr std::uint32_t random_bits(std::uint32_t chunk_key, std::uint32_t index_in_chunk) {
  const std::uint32_t x = chunk_key + index_in_chunk * random_stride;
  return (x ^ x >> 16) * random_factor;
}

// What each moment takes of an element's 32 bits.
constexpr std::uint32_t random16_moment1(std::uint32_t bits) { return bits >> 16; }
constexpr std::uint32_t random16_moment2(std::uint32_t bits) { return bits & 0xffffu; }
constexpr std::uint32_t random20_moment1(std::uint32_t bits) { return bits >> 12; }
constexpr std::uint32_t random20_moment2(std::uint32_t bits) { return bits & 0xfffffu; }

}  // namespace strata
