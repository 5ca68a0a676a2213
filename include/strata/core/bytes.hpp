#pragma once
// Byte sizes: constants, alignment, and text with units. A size in Strata is always bytes, never
// elements.

#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

inline constexpr std::uint64_t KiB = 1024;
inline constexpr std::uint64_t MiB = 1024 * KiB;
inline constexpr std::uint64_t GiB = 1024 * MiB;

// The smallest multiple of `alignment` (> 0) that is >= `value`.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// Reads "64MiB", "1.5 GB", "2e9", "4096 B": KiB/MiB/GiB/TiB are powers of 1024, KB/MB/GB/TB of
// 1000, no unit is bytes. Throws ConfigError naming the text when it is not a size, is negative, or
// does not fit 64 bits.
std::uint64_t parse_bytes(std::string_view text);

// "512 B", "1.50 MiB", "23.4 GiB": three significant digits, powers of 1024.
std::string format_bytes(std::uint64_t bytes);

}  // namespace strata
