#include "cli/yaml_document.hpp"

#include <fmt/format.h>

#include <vector>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::size_t yaml_bytes_max = 4 << 20;

}  // namespace

YAML::Node load_yaml(const std::string& yaml, const std::string& source_name) {
  if (yaml.size() > yaml_bytes_max) {
    throw ConfigError(fmt::format("{} has {} bytes: a config has at most {}", source_name,
                                  yaml.size(), yaml_bytes_max));
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(yaml);
    if (documents.size() > 1) throw ConfigError(source_name + " holds more than one YAML document");
    return documents.empty() ? YAML::Node() : documents.front();
  } catch (const YAML::Exception& error) {
    throw ConfigError(fmt::format("{} line {} column {} is not YAML: {}", source_name,
                                  error.mark.line + 1, error.mark.column + 1, error.msg));
  }
}

}  // namespace strata
