#pragma once
// A DeepSpeed config said in the words of this program. Thread contract: pure.

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

namespace strata {

struct DeepSpeedSetting {
  std::string key;  // of this program
  YAML::Node value;
  std::string name;   // as DeepSpeed has it
  std::string where;  // "in ds.json:4"
};

struct DeepSpeedConfig {
  std::vector<DeepSpeedSetting> settings;
  std::vector<DeepSpeedSetting> implied;  // what DeepSpeed does unasked: yields to other settings
  std::vector<std::string> problems, warnings;
  std::vector<std::string> notes;  // what each key became
};

// Whether the top of a config has words that are DeepSpeed's alone.
bool is_deepspeed(const YAML::Node& root);
// Whether that entry of such a config is DeepSpeed's, not this program's.
bool is_deepspeed_entry(const std::string& name, const YAML::Node& value);

DeepSpeedConfig translate_deepspeed(const YAML::Node& root, const std::string& source_name);

}  // namespace strata
