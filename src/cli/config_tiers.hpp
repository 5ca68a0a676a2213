#pragma once
// A tier table of a config as fractions that sum to 1; docs/config.md says how.

#include <yaml-cpp/yaml.h>

#include <string>

#include "strata/plan/plan.hpp"

namespace strata {

// Throws ConfigError "KEY WHERE: problem".
TierFractions read_fractions(const YAML::Node& node, const std::string& key,
                             const std::string& where);

}  // namespace strata
