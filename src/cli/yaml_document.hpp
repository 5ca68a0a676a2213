#pragma once
// A YAML document from outside: one, of bounded size. Thread contract: pure.

#include <yaml-cpp/yaml.h>

#include <string>

namespace strata {

// Null for an empty text. Throws ConfigError naming source, line and column.
YAML::Node load_yaml(const std::string& yaml, const std::string& source_name);

}  // namespace strata
