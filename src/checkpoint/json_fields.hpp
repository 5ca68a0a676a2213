#pragma once
// Typed, range-checked access to the members of a JSON object from outside. null counts as absent.

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace strata {

class JsonFields {
 public:
  // Both must outlive this view. Throws FormatError when `object` is no object.
  JsonFields(const nlohmann::json& object, std::string source);

  const std::string& source() const { return source_; }
  bool has(const char* key) const { return find(key) != nullptr; }
  bool is_null(const char* key) const;                // present, with the value null
  const nlohmann::json* find(const char* key) const;  // Null when absent or null.

  // Throw FormatError on the wrong type, ConfigError outside the range.
  std::optional<std::int64_t> integer(const char* key, std::int64_t min, std::int64_t max) const;
  std::int64_t required_integer(const char* key, std::int64_t min, std::int64_t max) const;
  std::optional<double> number(const char* key) const;  // finite
  std::optional<double> positive(const char* key) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> text(const char* key) const;

  [[noreturn]] void refuse(std::string_view why) const;      // ConfigError
  [[noreturn]] void bad_format(std::string_view why) const;  // FormatError

 private:
  const nlohmann::json& object_;
  std::string source_;
};

}  // namespace strata
