#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A number is a pure function
// of (seed, stream, counter), so data order, initial weights and stochastic rounding resume exactly
// and need no saved generator state.

#include <array>
#include <cstdint>

namespace strata {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

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
