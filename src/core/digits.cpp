#include "strata/core/digits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace strata {

std::string three_digits(double value) {
  const double size = std::abs(value);
  if (std::isnan(value)) return "-";
  if (size == 0) return "0";
  if (size < 0.0009995 || size >= 1e6) return fmt::format("{:.2e}", value);
  // Of the rounded value: 9.999 is 10.0, not 10.00.
  const double rounded = std::stod(fmt::format("{:.2e}", size));
  const int magnitude = static_cast<int>(std::floor(std::log10(rounded) + 1e-9));
  return fmt::format("{:.{}f}", value, std::clamp(2 - magnitude, 0, 5));
}

}  // namespace strata
