#pragma once
// What a config file and the command line say, merged by key, before any value is read: unknown
// keys, unsupported ones and duplicates are found here; renamed keys have their new names; tables
// of tiers are merged tier by tier.

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config_names.hpp"
#include "config_problems.hpp"

namespace strata {

enum class Source : std::uint8_t { file, command_line, deepspeed, deepspeed_default };

struct Setting {
  YAML::Node value;
  std::string name;   // as written: "offload.optimizer" for a setting of "offload.master"
  std::string where;  // "in run.yaml:4"
  Source source = Source::file;
  int rank = 0;  // among all settings, as they come
};

class Settings {
 public:
  // Throw ConfigError where nothing can be read; what is wrong with single keys becomes problems.
  void add_file(const std::string& yaml, const std::string& source_name);
  void add_override(const std::string& text);  // "key=value"
  // The DeepSpeed config among them, if one is: after all others, with which it must agree.
  void add_deepspeed();

  const std::map<std::string, Setting>& values() const { return values_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const ConfigProblems& problems() const { return problems_; }

 private:
  struct Place {
    std::string name, where;
    Source source;
    int rank;
  };
  // What it throws becomes a problem.
  void walk_collecting(const std::string& key, const YAML::Node& value, const Place& place);
  void walk(const std::string& key, const YAML::Node& value, const Place& place);
  void walk_map(const std::string& prefix, const YAML::Node& map, const Place& place);
  void walk_renamed(const RenamedKey& renamed, const YAML::Node& value, const Place& place);
  bool walk_table_of_three(const std::string& key, const YAML::Node& value, const Place& place);
  bool walk_tier(const std::string& key, const YAML::Node& value, const Place& place);
  void keep_deepspeed(const YAML::Node& value, const Place& place);
  void record(const std::string& key, const YAML::Node& value, const Place& place);

  struct DeepSpeedSource {
    YAML::Node root;
    std::string source_name;
    int rank;
  };
  std::map<std::string, Setting> values_;
  std::vector<std::string> warnings_, notes_;
  std::optional<DeepSpeedSource> deepspeed_;
  ConfigProblems problems_;
  std::string source_name_;
  int num_seen_ = 0;
};

}  // namespace strata
