#pragma once
// Typed arrays in a caller's scratch, which may start at any address.

#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::cpu {

inline constexpr std::uint64_t scratch_alignment = 64;

template <typename T>
std::uint64_t scratch_bytes(std::int64_t count) {
  return static_cast<std::uint64_t>(count) * sizeof(T) + scratch_alignment;
}

template <typename T>
std::span<T> scratch_array(std::span<std::byte> scratch, std::int64_t count) {
  ensure(scratch.size() >= scratch_bytes<T>(count));
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
  std::byte* aligned = scratch.data() + (align_up(address, scratch_alignment) - address);
  return {reinterpret_cast<T*>(aligned), static_cast<std::size_t>(count)};
}

}  // namespace strata::cpu
