#include "strata/core/bytes.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "strata/core/error.hpp"

namespace strata {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 10> units{{{"", 1},
                                      {"B", 1},
                                      {"KiB", 1024.0},
                                      {"MiB", 1024.0 * 1024},
                                      {"GiB", 1024.0 * 1024 * 1024},
                                      {"TiB", 1024.0 * 1024 * 1024 * 1024},
                                      {"KB", 1e3},
                                      {"MB", 1e6},
                                      {"GB", 1e9},
                                      {"TB", 1e12}}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw ConfigError(
      fmt::format("'{}' is not a size: {} (write 4096, 64MiB, 1.5GiB or 2e9)", text, why));
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text) {
  const std::string_view body = trimmed(text);
  double number = 0;
  const auto parsed = std::from_chars(body.data(), body.data() + body.size(), number);
  if (parsed.ec != std::errc{}) refuse(text, "it does not begin with a number");
  const auto unit =
      trimmed({parsed.ptr, static_cast<std::size_t>(body.data() + body.size() - parsed.ptr)});
  for (const Unit& known : units) {
    if (unit != known.name) continue;
    const double bytes = number * known.bytes;
    if (!(bytes >= 0)) refuse(text, "it is negative");
    if (!(bytes < 9.2e18)) refuse(text, "it is too large");
    return static_cast<std::uint64_t>(std::llround(bytes));
  }
  refuse(text, fmt::format("unknown unit '{}'", unit));
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < KiB) return fmt::format("{} B", bytes);
  constexpr std::array<std::string_view, 5> names{"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < names.size()) {
    value /= 1024.0;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, names[unit]);
}

}  // namespace strata
