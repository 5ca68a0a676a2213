#include "strata/cli/config.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "config_keys.hpp"
#include "config_settings.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// The plan has one micro-batch shape; how many rows are scored at once changes no loss.
void warn_of_eval_batch_size(const Settings& settings, RunConfig& config) {
  const bool is_set = settings.values().contains("per_device_eval_batch_size");
  if (!is_set || config.per_device_eval_batch_size == config.per_device_train_batch_size) return;
  config.warnings.push_back(
      fmt::format("per_device_eval_batch_size: {} is not used: evaluation runs at "
                  "per_device_train_batch_size ({}), with the same result",
                  config.per_device_eval_batch_size, config.per_device_train_batch_size));
}

void read_value(const ConfigKey& key, const Setting& setting, RunConfig& config) {
  key.set(ConfigValue(setting.value, setting.name, setting.where), config);
}

// Contradictions are sought among values that could all be read.
RunConfig read_values(const Settings& settings) {
  RunConfig config;
  ConfigProblems problems = settings.problems();
  for (const ConfigKey& key : config_keys()) {
    const auto found = settings.values().find(key.name);
    if (found == settings.values().end()) continue;
    problems.collect(found->second.rank, [&] { read_value(key, found->second, config); });
  }
  problems.check();
  check_config(config);
  return config;
}

std::string origin_of(const Settings& settings, const std::string& key) {
  const auto found = settings.values().find(key);
  if (found == settings.values().end()) return "default";
  return found->second.source == Source::file ? "file" : "command line";
}

RunConfig resolve(const Settings& settings) {
  RunConfig config = read_values(settings);
  config.warnings = settings.warnings();
  for (const ConfigKey& key : config_keys())
    config.resolved.push_back({key.name, key.get(config), origin_of(settings, key.name)});
  config.world = static_cast<int>(config.ranks);  // of one process
  warn_of_eval_batch_size(settings, config);
  return config;
}

std::string origin_of(const RunConfig& config, const std::string& key) {
  for (const RunConfig::Origin& entry : config.resolved) {
    if (entry.key == key) return entry.origin;
  }
  return "default";
}

}  // namespace

RunConfig read_config(const std::filesystem::path& file, std::span<const std::string> overrides) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw ConfigError(
        fmt::format("cannot read config {}: {}", file.string(), std::strerror(errno)));
  if (std::filesystem::is_directory(file))
    throw ConfigError(fmt::format("config {} is a folder", file.string()));
  const std::string yaml((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  if (stream.bad()) throw ConfigError(fmt::format("cannot read config {}", file.string()));
  return parse_config(yaml, file.string(), overrides);
}

RunConfig parse_config(const std::string& yaml, const std::string& source_name,
                       std::span<const std::string> overrides) {
  Settings settings;
  settings.add_file(yaml, source_name);
  for (const std::string& text : overrides) settings.add_override(text);
  return resolve(settings);
}

std::string format_config(const RunConfig& config) {
  std::string text, group;
  for (const ConfigKey& key : config_keys()) {
    const std::size_t dot = key.name.find('.');
    const std::string owner = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (owner != group && !owner.empty()) text += owner + ":\n";
    group = owner;
    const std::string leaf = owner.empty() ? key.name : "  " + key.name.substr(dot + 1);
    text +=
        fmt::format("{:<52}  # {}\n", leaf + ": " + key.get(config), origin_of(config, key.name));
  }
  return text;
}

}  // namespace strata
