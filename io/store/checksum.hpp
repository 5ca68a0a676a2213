#pragma once
// The checksum of everything that a store keeps: XXH3-64.

#include <xxhash.h>

#include <cstdint>
#include <span>

namespace strata {

inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace strata
