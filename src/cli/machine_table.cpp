#include "cli/machine_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::size_t text_length_max = 2000;

bool is_unprintable(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

const auto& name_of(const std::pair<std::string, MachineEntry>& entry) { return entry.first; }

}  // namespace

MachineEntry::MachineEntry(YAML::Node node, std::string key, std::string source_name)
    : node_(std::move(node)), key_(std::move(key)), source_name_(std::move(source_name)) {}

std::string MachineEntry::where() const {
  return fmt::format("in {} line {}", source_name_, node_.Mark().line + 1);
}

void MachineEntry::fail(const std::string& problem) const {
  throw ConfigError(key_.empty() ? fmt::format("{}: {}", source_name_, problem)
                                 : fmt::format("{} {}: {}", key_, where(), problem));
}

MachineTable MachineEntry::table() const {
  if (!node_.IsMap()) fail("expected a table of key: value lines");
  return {node_, key_, source_name_};
}

std::vector<MachineEntry> MachineEntry::list(std::size_t num_max) const {
  if (!node_.IsSequence() || node_.size() == 0) fail("expected a list of at least one item");
  if (node_.size() > num_max) fail(fmt::format("has more than {} items", num_max));
  std::vector<MachineEntry> items;
  for (const YAML::Node& item : node_)
    items.emplace_back(item, fmt::format("{}[{}]", key_, items.size()), source_name_);
  return items;
}

std::string MachineEntry::plain_text() const {
  const std::string text = node_.IsNull() ? "" : value().text();
  if (text.empty()) fail("is empty");
  if (text.size() > text_length_max)
    fail(fmt::format("has {} bytes, at most {} are read", text.size(), text_length_max));
  if (std::ranges::any_of(text, is_unprintable)) fail("holds characters that are not printable");
  return text;
}

MachineTable::MachineTable(const YAML::Node& map, std::string key, std::string source_name)
    : key_(std::move(key)), source_name_(std::move(source_name)), line_(map.Mark().line + 1) {
  for (const auto& entry : map) {
    const int line = entry.first.Mark().line + 1;
    if (!entry.first.IsScalar())
      throw ConfigError(fmt::format("a key in {} line {} is no plain name", source_name_, line));
    const std::string name = entry.first.Scalar();
    if (std::ranges::find(entries_, name, name_of) != entries_.end())
      throw ConfigError(
          fmt::format("'{}' in {} line {} is set twice", key_of(name), source_name_, line));
    entries_.emplace_back(name, MachineEntry(entry.second, key_of(name), source_name_));
  }
}

std::string MachineTable::key_of(const std::string& name) const {
  return key_.empty() ? name : key_ + "." + name;
}

std::optional<MachineEntry> MachineTable::find(const std::string& name) {
  asked_.push_back(name);
  const auto found = std::ranges::find(entries_, name, name_of);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

MachineEntry MachineTable::required(const std::string& name) {
  auto entry = find(name);
  if (!entry)
    throw ConfigError(fmt::format("{} line {}: {} is missing", source_name_, line_, key_of(name)));
  return std::move(*entry);
}

void MachineTable::refuse_unknown() const {
  for (const auto& [name, entry] : entries_) {
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    const std::string nearest = nearest_name(name, asked_);
    throw ConfigError(fmt::format("unknown key '{}' {}{}", entry.key(), entry.where(),
                                  nearest.empty()
                                      ? ": docs/design/machines.md lists all keys"
                                      : fmt::format(": did you mean '{}'?", key_of(nearest))));
  }
}

}  // namespace strata
