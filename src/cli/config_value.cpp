#include "config_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "config_tiers.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

template <typename Number>
std::optional<Number> parse_whole(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// "1e3" is how people write counts too; beyond 2^53 doubles skip integers.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (const auto value = parse_whole<std::int64_t>(text)) return value;
  const auto number = parse_number(text);
  if (!number || *number != std::trunc(*number) || std::abs(*number) > 9007199254740992.0)
    return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

bool contains(const NumberRange& range, double value) {
  const bool above = range.low_bound == Bound::inclusive ? value >= range.low : value > range.low;
  const bool below =
      range.high_bound == Bound::inclusive ? value <= range.high : value < range.high;
  return above && below;
}

bool is_plain(const std::string& text) {
  if (text.empty() || parse_number(text)) return false;
  const auto is_safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '.';
  };
  const auto is_inner = [&](char c) { return is_safe(c) || c == '-' || c == '+'; };
  if (!is_safe(text.front()) || !std::all_of(text.begin(), text.end(), is_inner)) return false;
  const YAML::Node node = YAML::Load(text);
  bool as_boolean = false;
  return node.IsScalar() && !YAML::convert<bool>::decode(node, as_boolean);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace

std::string describe(const IntegerRange& range) {
  const IntegerRange all;
  std::string text = "integer";
  if (range.low != all.low) text += fmt::format(" >= {}", range.low);
  if (range.high != all.high) text += fmt::format(", <= {}", range.high);
  return text;
}

std::string describe(const NumberRange& range) {
  std::string text =
      fmt::format("number {} {}", range.low_bound == Bound::inclusive ? ">=" : ">", range.low);
  if (std::isfinite(range.high)) {
    text += fmt::format(", {} {}", range.high_bound == Bound::inclusive ? "<=" : "<", range.high);
  }
  return text;
}

ConfigValue::ConfigValue(YAML::Node node, std::string key, std::string where)
    : node_(std::move(node)), key_(std::move(key)), where_(std::move(where)) {}

void ConfigValue::fail(const std::string& problem) const {
  throw ConfigError(fmt::format("{} {}: {}", key_, where_, problem));
}

std::string ConfigValue::text() const {
  if (!node_.IsScalar()) fail("expected one value, found a list or table");
  return node_.Scalar();
}

bool ConfigValue::boolean() const {
  bool value = false;
  if (!node_.IsScalar() || !YAML::convert<bool>::decode(node_, value))
    fail("expected true or false");
  return value;
}

std::int64_t ConfigValue::integer(const IntegerRange& range) const {
  const auto value = parse_integer(text());
  if (!value || *value < range.low || *value > range.high) {
    fail(fmt::format("'{}' is not an {}", text(), describe(range)));
  }
  return *value;
}

std::uint64_t ConfigValue::seed() const {
  const auto value = parse_whole<std::uint64_t>(text());
  if (!value) fail(fmt::format("'{}' is not an integer >= 0, < 2^64", text()));
  return *value;
}

double ConfigValue::number(const NumberRange& range) const {
  const auto value = parse_number(text());
  if (!value || !contains(range, *value))
    fail(fmt::format("'{}' is not a {}", text(), describe(range)));
  return *value;
}

std::vector<double> ConfigValue::numbers(const NumberRange& range) const {
  std::vector<double> values;
  if (node_.IsScalar()) return {number(range)};
  if (!node_.IsSequence()) fail("expected a list of numbers, such as [1, 2]");
  for (const YAML::Node& item : node_)
    values.push_back(ConfigValue(item, key_, where_).number(range));
  return values;
}

std::uint64_t ConfigValue::bytes() const {
  std::uint64_t value = 0;
  try {
    value = parse_bytes(text());
  } catch (const ConfigError& error) {
    fail(error.what());
  }
  if (value == 0) fail("a size above 0 is needed, such as 256MiB");
  return value;
}

std::vector<std::string> ConfigValue::list() const {
  std::vector<std::string> items;
  if (node_.IsScalar())
    items.push_back(node_.Scalar());
  else if (!node_.IsSequence())
    fail("expected a list, such as [a, b]");
  else
    for (const YAML::Node& item : node_) items.push_back(ConfigValue(item, key_, where_).text());
  if (std::ranges::find(items, "") != items.end()) fail("an item is empty");
  return items;
}

TierFractions ConfigValue::fractions() const { return read_fractions(node_, key_, where_); }

std::string yaml_number(double value) { return fmt::format("{}", value); }

std::string yaml_text(const std::string& text) { return is_plain(text) ? text : quoted(text); }

std::string yaml_list(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + yaml_text(item);
  return "[" + text + "]";
}

std::string yaml_numbers(const std::vector<double>& items) {
  std::string text;
  for (const double item : items) text += (text.empty() ? "" : ", ") + yaml_number(item);
  return "[" + text + "]";
}

std::string yaml_bytes(std::uint64_t bytes) {
  if (bytes % GiB == 0) return fmt::format("{}GiB", bytes / GiB);
  if (bytes % MiB == 0) return fmt::format("{}MiB", bytes / MiB);
  if (bytes % KiB == 0) return fmt::format("{}KiB", bytes / KiB);
  return fmt::format("{}", bytes);
}

std::string yaml_fractions(const TierFractions& fractions) {
  return fmt::format("{{gpu: {}, cpu: {}, nvme: {}}}", fractions.device, fractions.host,
                     fractions.nvme);
}

}  // namespace strata
