#pragma once
// Where regions of the memory tiers begin.

#include <cstdint>

#include "strata/core/bytes.hpp"

namespace strata {

inline constexpr std::uint64_t memory_alignment = 4096;  // serves direct I/O and any vector load

constexpr std::uint64_t memory_aligned(std::uint64_t bytes) {
  return align_up(bytes, memory_alignment);
}

}  // namespace strata
