#pragma once
// The keys of a config, each declared once: parsing, format_config, the resolved list and
// docs/config.md all walk this table.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config_value.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

enum class KeyShape : std::uint8_t { plain, tier_table };

struct ConfigKey {
  std::string name;  // "offload.gpu_limit"
  std::string type;  // "integer >= 1"
  std::string doc;
  std::function<void(const ConfigValue&, RunConfig&)> set;
  std::function<std::string(const RunConfig&)> get;  // as YAML; "null" when unset
  KeyShape shape = KeyShape::plain;
};

const std::vector<ConfigKey>& config_keys();
const ConfigKey* find_key(std::string_view name);  // nullptr when unknown
bool is_key_group(std::string_view name);          // "offload": some key is below it

// Contradictions between keys. Throws ConfigError naming both.
void check_config(const RunConfig& config);

}  // namespace strata
