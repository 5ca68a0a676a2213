#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A number is a pure function
// of (seed, stream, counter), so data order, initial weights and stochastic rounding resume exactly
// and need no saved generator state.

#include <array>
#include <cstdint>

namespace strata {

// Here, as kernels on a GPU draw from it too.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
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

// One independent stream of numbers, addressed by position. A value type: copying it copies the
// position.
class PhiloxStream {
 public:
  PhiloxStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  double next_uniform();                          // In [0, 1), 53 bits.
  double next_normal();                           // Mean 0, deviation 1 (Box-Muller).
  std::uint64_t next_below(std::uint64_t bound);  // Uniform in [0, bound), bound > 0, unbiased.

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  unsigned left_ = 0;
};

}  // namespace strata
