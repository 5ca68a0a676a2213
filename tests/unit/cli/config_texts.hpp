#pragma once
// What tests of configs read texts with, as if they were a file of a name.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"

namespace strata {

struct ConfigTexts {
  const char* file;
  RunConfig operator()(const std::string& yaml,
                       const std::vector<std::string>& overrides = {}) const {
    return parse_config(yaml, file, overrides);
  }
};

struct ConfigErrors {
  const char* file;
  std::string operator()(const std::string& yaml,
                         const std::vector<std::string>& overrides = {}) const {
    try {
      parse_config(yaml, file, overrides);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
};

constexpr ConfigTexts parse{"run.yaml"};
constexpr ConfigErrors error_of{"run.yaml"};

// Where a key's value came from.
inline std::string origin(const RunConfig& config, const std::string& key) {
  for (const RunConfig::Origin& entry : config.resolved)
    if (entry.key == key) return entry.origin;
  return "absent";
}

inline void expect_tiers(const TierFractions& got, const TierFractions& expected) {
  EXPECT_DOUBLE_EQ(got.device, expected.device);
  EXPECT_DOUBLE_EQ(got.host, expected.host);
  EXPECT_DOUBLE_EQ(got.nvme, expected.nvme);
}

}  // namespace strata
