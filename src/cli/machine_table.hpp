#pragma once
// The tables of a machine file as they are read: each entry knows its key and line, and a table
// which keys were asked for, so that the others can be refused with the nearest name.

#include <yaml-cpp/yaml.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/config_value.hpp"

namespace strata {

class MachineTable;

class MachineEntry {
 public:
  // `key` is the whole way to it: "link.up_bytes_per_s"; empty for the file itself.
  MachineEntry(YAML::Node node, std::string key, std::string source_name);

  const YAML::Node& node() const { return node_; }
  const std::string& key() const { return key_; }
  std::string where() const;  // "in node.yaml line 4"
  ConfigValue value() const { return {node_, key_, where()}; }

  // Throw ConfigError when the entry is something else.
  MachineTable table() const;
  std::vector<MachineEntry> list(std::size_t num_max) const;  // of 1 to `num_max` items
  std::string plain_text() const;                             // not empty, nothing unprintable
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  YAML::Node node_;
  std::string key_, source_name_;
};

class MachineTable {
 public:
  MachineTable(const YAML::Node& map, std::string key, std::string source_name);

  std::optional<MachineEntry> find(const std::string& name);
  MachineEntry required(const std::string& name);
  void refuse_unknown() const;  // keys that nobody asked for

 private:
  std::string key_of(const std::string& name) const;

  std::string key_, source_name_;
  int line_ = 0;
  std::vector<std::pair<std::string, MachineEntry>> entries_;
  std::vector<std::string> asked_;
};

}  // namespace strata
