#include "strata/cli/config.hpp"

#include <fmt/format.h>

#include "config_keys.hpp"
#include "config_settings.hpp"
#include "text_file.hpp"

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
  const Setting& setting = found->second;
  if (setting.source == Source::command_line) return "command line";
  const std::string place = setting.where.substr(setting.where.find(' ') + 1);
  if (setting.source == Source::deepspeed) return place + ", DeepSpeed's " + setting.name;
  return setting.source == Source::file ? place : place + ", DeepSpeed's default";
}

RunConfig resolve(const Settings& settings) {
  RunConfig config = read_values(settings);
  config.warnings = settings.warnings();
  config.notes = settings.notes();
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
  return parse_config(read_text_file(file, "the config"), file.string(), overrides);
}

RunConfig parse_config(const std::string& yaml, const std::string& source_name,
                       std::span<const std::string> overrides) {
  Settings settings;
  settings.add_file(yaml, source_name);
  for (const std::string& text : overrides) settings.add_override(text);
  settings.add_deepspeed();
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
