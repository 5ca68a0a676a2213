#include "strata/core/digits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

std::string scaled(double value, std::string_view unit) {
  constexpr std::array prefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t step = 0;
  while (value >= 999.5 && step + 1 < prefixes.size()) value /= 1000, ++step;
  const int decimals = value >= 99.95 || step == 0 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, decimals, prefixes[step], unit);
}

}  // namespace strata
