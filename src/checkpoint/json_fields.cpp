#include "json_fields.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {

using nlohmann::json;

JsonFields::JsonFields(const json& object, std::string source)
    : object_(object), source_(std::move(source)) {
  if (!object.is_object()) bad_format("is no JSON object");
}

const json* JsonFields::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::is_null(const char* key) const {
  const auto found = object_.find(key);
  return found != object_.end() && found->is_null();
}

std::optional<std::int64_t> JsonFields::integer(const char* key, std::int64_t min,
                                                std::int64_t max) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) bad_format(fmt::format("'{}' is no whole number", key));
  // Above 2^63 the parser holds an unsigned number, which must not wrap into the range.
  const bool is_huge = value->is_number_unsigned() && value->get<std::uint64_t>() > std::uint64_t{1}
                                                                                        << 62;
  const auto number =
      is_huge ? std::numeric_limits<std::int64_t>::max() : value->get<std::int64_t>();
  if (number < min || number > max) {
    refuse(fmt::format("'{}' is {}; it must lie in [{}, {}]", key, value->dump(), min, max));
  }
  return number;
}

std::int64_t JsonFields::required_integer(const char* key, std::int64_t min,
                                          std::int64_t max) const {
  const auto value = integer(key, min, max);
  if (!value) refuse(fmt::format("'{}' is missing", key));
  return *value;
}

std::optional<double> JsonFields::number(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) bad_format(fmt::format("'{}' is no number", key));
  if (!std::isfinite(value->get<double>())) refuse(fmt::format("'{}' is not finite", key));
  return value->get<double>();
}

std::optional<double> JsonFields::positive(const char* key) const {
  const auto value = number(key);
  if (value && !(*value > 0)) refuse(fmt::format("'{}' is {}; it must be positive", key, *value));
  return value;
}

std::optional<bool> JsonFields::boolean(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) bad_format(fmt::format("'{}' is neither true nor false", key));
  return value->get<bool>();
}

std::optional<std::string> JsonFields::text(const char* key) const {
  const json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) bad_format(fmt::format("'{}' is no text", key));
  return value->get<std::string>();
}

void JsonFields::refuse(std::string_view why) const {
  throw ConfigError(fmt::format("{}: {}", source_, why));
}

void JsonFields::bad_format(std::string_view why) const {
  throw FormatError(fmt::format("{}: {}", source_, why));
}

}  // namespace strata
