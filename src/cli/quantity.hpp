#pragma once
// Numbers with units, as machine profiles state them: "54.8 GB/s", "989 TFLOP/s", "5 us".
// Thread contract: pure.

#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

enum class Quantity : std::uint8_t {
  bytes,
  bytes_per_s,
  flops,
  flops_per_s,
  params_per_s,
  seconds,
  ratio,  // has no unit
};

// Reads a number >= 0, in bytes, FLOP, parameters and seconds; a unit is required where the
// quantity has one, K to E count 1000. More than any machine of today has is refused. Throws
// ConfigError that says what would be read.
double parse_quantity(std::string_view text, Quantity quantity);

// The text with the largest unit that reads back as `value`.
std::string format_quantity(double value, Quantity quantity);

}  // namespace strata
