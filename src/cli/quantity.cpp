#include "cli/quantity.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <span>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Thousandths divide, so that 5 us is the double nearest to 5e-6.
struct Prefix {
  std::string_view name;
  double times, over = 1;
};
// From large to small: the first that reads back exactly is written.
constexpr Prefix large_prefixes[] = {{"E", 1e18}, {"P", 1e15}, {"T", 1e12}, {"G", 1e9},
                                     {"M", 1e6},  {"K", 1e3},  {"", 1}};
constexpr Prefix small_prefixes[] = {{"", 1}, {"m", 1, 1e3}, {"u", 1, 1e6}, {"n", 1, 1e9}};
constexpr Prefix size_prefixes[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"K", 1e3}, {"", 1}};
constexpr Prefix no_prefix[] = {{"", 1}};

struct QuantityFacts {
  std::string_view unit, kind, example;
  std::span<const Prefix> prefixes;
  double max;
};

const QuantityFacts& facts_of(Quantity quantity) {
  static constexpr QuantityFacts facts[] = {
      {"B", "size", "80 GB", size_prefixes, 1e18},
      {"B/s", "rate of bytes", "54.8 GB/s", large_prefixes, 1e16},
      {"FLOP", "number of operations", "4.3 TFLOP", large_prefixes, 1e21},
      {"FLOP/s", "rate of operations", "989 TFLOP/s", large_prefixes, 1e21},
      {"param/s", "rate of parameters", "2.4 Gparam/s", large_prefixes, 1e16},
      {"s", "time", "5 us", small_prefixes, 60},
      {"", "ratio", "0.8", no_prefix, 10},
  };
  return facts[static_cast<std::size_t>(quantity)];
}

[[noreturn]] void refuse(std::string_view text, const QuantityFacts& facts, std::string_view why) {
  throw ConfigError(
      fmt::format("'{}' is not a {}: {} (write {})", text, facts.kind, why, facts.example));
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

const Prefix& prefix_of(std::string_view unit, std::string_view text, const QuantityFacts& facts) {
  for (const Prefix& prefix : facts.prefixes)
    if (unit == fmt::format("{}{}", prefix.name, facts.unit)) return prefix;
  if (unit.empty()) refuse(text, facts, "it has no unit");
  refuse(text, facts, fmt::format("unknown unit '{}'", unit));
}

double parse_scaled(std::string_view text, const QuantityFacts& facts) {
  const std::string_view body = without_spaces(text);
  double number = 0;
  const auto parsed = std::from_chars(body.data(), body.data() + body.size(), number);
  if (parsed.ec != std::errc{}) refuse(text, facts, "it does not begin with a number");
  if (!std::isfinite(number)) refuse(text, facts, "it is not finite");
  if (number < 0) refuse(text, facts, "it is negative");
  const auto used = static_cast<std::size_t>(parsed.ptr - body.data());
  const Prefix& prefix = prefix_of(without_spaces(body.substr(used)), text, facts);
  return number * prefix.times / prefix.over;
}

// Sizes are what core says they are, so 64MiB is one too.
double parse_size(std::string_view text, const QuantityFacts& facts) {
  const std::string_view body = without_spaces(text);
  if (!body.ends_with('B')) refuse(text, facts, "it has no unit");
  return static_cast<double>(parse_bytes(body));
}

std::string scaled_text(double value, const Prefix& prefix, const QuantityFacts& facts) {
  const std::string number = fmt::format("{}", value / prefix.times * prefix.over);
  return facts.unit.empty() ? number : fmt::format("{} {}{}", number, prefix.name, facts.unit);
}

}  // namespace

double parse_quantity(std::string_view text, Quantity quantity) {
  const QuantityFacts& facts = facts_of(quantity);
  const double value =
      quantity == Quantity::bytes ? parse_size(text, facts) : parse_scaled(text, facts);
  if (value > facts.max)
    refuse(text, facts, fmt::format("more than {} is no machine of today", facts.max));
  return value;
}

std::string format_quantity(double value, Quantity quantity) {
  const QuantityFacts& facts = facts_of(quantity);
  for (const Prefix& prefix : facts.prefixes) {
    if (value * prefix.over < prefix.times) continue;
    const std::string text = scaled_text(value, prefix, facts);
    if (parse_quantity(text, quantity) == value) return text;
  }
  return scaled_text(value, {"", 1}, facts);
}

}  // namespace strata
