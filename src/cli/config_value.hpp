#pragma once
// One value of a config, with its key and place for error messages, read as the types that keys
// have; and the reverse, the YAML text of a value. Reading throws ConfigError "KEY WHERE: problem".

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

struct IntegerRange {
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};
std::string describe(const IntegerRange& range);  // "integer >= 1"

enum class Bound : std::uint8_t { inclusive, exclusive };
struct NumberRange {
  double low = 0;
  Bound low_bound = Bound::inclusive;
  double high = std::numeric_limits<double>::infinity();
  Bound high_bound = Bound::exclusive;
};
std::string describe(const NumberRange& range);  // "number >= 0, < 1"

class ConfigValue {
 public:
  // `where` begins with its preposition: "in run.yaml:4".
  ConfigValue(YAML::Node node, std::string key, std::string where);

  std::string text() const;
  bool boolean() const;
  std::int64_t integer(const IntegerRange& range) const;
  std::uint64_t seed() const;
  double number(const NumberRange& range) const;
  std::vector<double> numbers(const NumberRange& range) const;  // one scalar is a list of one
  std::uint64_t bytes() const;                                  // "64MiB"; above 0
  std::vector<std::string> list() const;                        // one scalar is a list of one
  TierFractions fractions() const;                              // docs/config.md, "Tier tables"
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  YAML::Node node_;
  std::string key_, where_;
};

std::string yaml_number(double value);  // the shortest text that reads back as `value`
std::string yaml_text(const std::string& text);
std::string yaml_list(const std::vector<std::string>& items);
std::string yaml_numbers(const std::vector<double>& items);
std::string yaml_bytes(std::uint64_t bytes);  // "256MiB" where exact
std::string yaml_fractions(const TierFractions& fractions);

}  // namespace strata
