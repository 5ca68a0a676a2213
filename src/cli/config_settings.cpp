#include "config_settings.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "config_keys.hpp"
#include "config_names.hpp"
#include "deepspeed_config.hpp"
#include "text_file.hpp"
#include "yaml_document.hpp"
#include "strata/cli/config.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr const char* optimizer_table = "offload.optimizer";

// Names that may be near: none that would be refused in its turn.
std::vector<std::string> known_names() {
  std::vector<std::string> names{optimizer_table, "deepspeed"};
  for (const ConfigKey& key : config_keys()) names.push_back(key.name);
  for (const RenamedKey& key : renamed_keys()) names.push_back(key.old_name);
  return names;
}

std::string suggested_name(const std::string& key) {
  const std::string nearest = nearest_name(key, known_names());
  const RenamedKey* renamed = find_renamed(nearest);
  return renamed == nullptr ? nearest : renamed->new_name;
}

[[noreturn]] void fail_unknown(const std::string& key, const std::string& where) {
  const std::string hint = suggested_name(key);
  throw ConfigError(fmt::format("unknown key '{}' {}{}", key, where,
                                hint.empty() ? ": docs/config.md lists all keys"
                                             : fmt::format(": did you mean '{}'?", hint)));
}

void check_recognised(const RecognisedKey& recognised, const YAML::Node& value,
                      const std::string& name, const std::string& where) {
  if (accepts(recognised, value)) return;
  const std::string shown = value.IsScalar() ? fmt::format("{}: {}", name, value.Scalar()) : name;
  throw ConfigError(fmt::format("'{}' {} is not supported: {}", shown, where, recognised.reason));
}

// In transformers the old ratio may be 1; as warmup_steps that would be one step.
void check_warmup_ratio(const YAML::Node& value, const std::string& where) {
  ConfigValue(value, "warmup_ratio", where).number({.high = 1});
}

// What of a config that is DeepSpeed's is that, and what is said in the words of this program.
std::pair<YAML::Node, YAML::Node> parted(const YAML::Node& root) {
  YAML::Node theirs(YAML::NodeType::Map), ours(YAML::NodeType::Map);
  for (const auto& entry : root) {
    const bool is_theirs =
        entry.first.IsScalar() && is_deepspeed_entry(entry.first.Scalar(), entry.second);
    (is_theirs ? theirs : ours).force_insert(entry.first, entry.second);
  }
  return {theirs, ours};
}

YAML::Node deepspeed_file(const std::string& path, const std::string& where) {
  const YAML::Node root = load_yaml(read_text_file(path, "the DeepSpeed config"), path);
  if (!root.IsMap())
    throw ConfigError(fmt::format("'deepspeed' {}: {} is not a table of keys", where, path));
  return root;
}

std::string resolved_as(const std::string& key, const Setting& setting) {
  const ConfigKey& known = *find_key(key);
  RunConfig config;
  known.set(ConfigValue(setting.value, setting.name, setting.where), config);
  return known.get(config);
}

// Whoever trains with transformers has its words and DeepSpeed's checked against each other too.
void check_agreement(const std::string& key, const Setting& known, const Setting& added) {
  if (known.source == Source::command_line) return;
  const std::string left = resolved_as(key, added), right = resolved_as(key, known);
  if (left == right) return;
  throw ConfigError(
      fmt::format("'{}' {} is {}, but '{}' {} is {}: make them alike, or leave one out", added.name,
                  added.where, left, known.name, known.where, right));
}

bool is_device_table(const YAML::Node& value) {
  return value.IsMap() && value["device"].IsDefined();
}

}  // namespace

void Settings::add_file(const std::string& yaml, const std::string& source_name) {
  const YAML::Node root = load_yaml(yaml, source_name);
  if (root.IsNull()) return;
  if (!root.IsMap()) throw ConfigError(source_name + " is not a table of key: value lines");
  source_name_ = source_name;
  const Place place{"", "in " + source_name, Source::file, num_seen_++};
  if (!is_deepspeed(root)) return walk_map("", root, place);
  const auto [theirs, ours] = parted(root);
  deepspeed_ = {theirs, source_name, place.rank};
  walk_map("", ours, place);
}

void Settings::add_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::size_t begin = text.starts_with("--") ? 2 : 0;
  if (equals == std::string::npos || equals <= begin) {
    throw ConfigError(fmt::format("'{}' on the command line is not key=value", text));
  }
  const std::string key = text.substr(begin, equals - begin);
  const YAML::Node value =
      load_yaml(text.substr(equals + 1), fmt::format("the value of '{}'", text));
  walk_collecting(
      key, value,
      {key, fmt::format("on the command line ('{}')", text), Source::command_line, num_seen_++});
}

void Settings::walk_map(const std::string& prefix, const YAML::Node& map, const Place& place) {
  std::set<std::string> seen;
  for (const auto& entry : map) {
    const std::string where =
        place.source == Source::command_line
            ? place.where
            : fmt::format("in {}:{}", source_name_, entry.first.Mark().line + 1);
    const int rank = num_seen_++;
    if (!entry.first.IsScalar()) {
      problems_.add(rank, fmt::format("a key {} is no plain name", where));
      continue;
    }
    const std::string key = prefix + entry.first.Scalar();
    if (!seen.insert(key).second)
      problems_.add(rank, fmt::format("'{}' {} is set twice", key, where));
    else
      walk_collecting(key, entry.second, {key, where, place.source, rank});
  }
}

void Settings::walk_collecting(const std::string& key, const YAML::Node& value,
                               const Place& place) {
  problems_.collect(place.rank, [&] { walk(key, value, place); });
}

void Settings::walk(const std::string& key, const YAML::Node& value, const Place& place) {
  if (const RenamedKey* renamed = find_renamed(key)) return walk_renamed(*renamed, value, place);
  if (const TranslatedKey* meant = find_translated(key, value))
    return walk(meant->new_name, YAML::Node(meant->new_value), place);
  if (find_key(key) != nullptr) return record(key, value, place);
  if (key == "deepspeed") return keep_deepspeed(value, place);
  if (walk_table_of_three(key, value, place) || walk_tier(key, value, place)) return;
  if (const RecognisedKey* recognised = find_recognised(key)) {
    return check_recognised(*recognised, value, place.name, place.where);
  }
  if (!is_key_group(key)) fail_unknown(place.name, place.where);
  if (value.IsNull()) return;
  if (!value.IsMap())
    throw ConfigError(fmt::format("'{}' {} is a table of keys", key, place.where));
  walk_map(key + ".", value, place);
}

void Settings::walk_renamed(const RenamedKey& renamed, const YAML::Node& value,
                            const Place& place) {
  if (renamed.kind == OldName::outdated)
    warnings_.push_back(
        fmt::format("'{}' {} is now called '{}'", place.name, place.where, renamed.new_name));
  if (place.name == "warmup_ratio" && !value.IsNull()) {
    check_warmup_ratio(value, place.where);
    // transformers lets warmup_steps win over a ratio of 0, and files often hold both.
    if (normalised_value(value) == "0") return;
  }
  walk(renamed.new_name, value, place);
}

// offload.optimizer stands for its three roles; a role named by itself in the same file wins over
// it.
bool Settings::walk_table_of_three(const std::string& key, const YAML::Node& value,
                                   const Place& place) {
  const std::string table = optimizer_table;
  if (key != table && !key.starts_with(table + ".")) return false;
  for (const char* role : {"offload.master", "offload.moment1", "offload.moment2"}) {
    const auto known = values_.find(role);
    const bool is_named_itself = known != values_.end() && known->second.source == place.source &&
                                 place.source == Source::file &&
                                 !known->second.name.starts_with(table);
    if (!is_named_itself) walk(role + key.substr(table.size()), value, place);
  }
  return true;
}

// "offload.master.nvme": one tier of a table, merged into what the table holds.
bool Settings::walk_tier(const std::string& key, const YAML::Node& value, const Place& place) {
  const std::size_t dot = key.rfind('.');
  if (dot == std::string::npos) return false;
  const std::string table = key.substr(0, dot);
  const ConfigKey* known = find_key(table);
  if (known == nullptr || known->shape != KeyShape::tier_table) return false;
  YAML::Node merged(YAML::NodeType::Map);
  if (const auto found = values_.find(table); found != values_.end()) {
    const Setting& before = found->second;
    if (!before.value.IsMap() || is_device_table(before.value)) {
      throw ConfigError(fmt::format(
          "'{}' {} cannot be added to '{}' {}, which lists no tiers: give the whole table",
          place.name, place.where, before.name, before.where));
    }
    merged = YAML::Clone(before.value);
  }
  merged[key.substr(dot + 1)] = value;
  values_[table] = {merged, place.name.substr(0, place.name.rfind('.')), place.where, place.source,
                    place.rank};
  return true;
}

void Settings::keep_deepspeed(const YAML::Node& value, const Place& place) {
  const std::string text = normalised_value(value);
  const bool is_none = text == "null" || text == "false" || text == "none";
  if (is_none && place.source == Source::file) return;
  if (deepspeed_ && place.source == Source::file)
    throw ConfigError(
        fmt::format("'deepspeed' {} names a second DeepSpeed config: {} has words of one itself",
                    place.where, source_name_));
  deepspeed_.reset();
  if (is_none) return;
  if (value.IsMap())
    deepspeed_ = {value, source_name_, place.rank};
  else
    deepspeed_ = {deepspeed_file(ConfigValue(value, place.name, place.where).text(), place.where),
                  value.Scalar(), place.rank};
}

void Settings::add_deepspeed() {
  if (!deepspeed_) return;
  const int rank = deepspeed_->rank;
  const DeepSpeedConfig config = translate_deepspeed(deepspeed_->root, deepspeed_->source_name);
  for (const std::string& problem : config.problems) problems_.add(rank, problem);
  warnings_.insert(warnings_.end(), config.warnings.begin(), config.warnings.end());
  notes_ = config.notes;
  const auto add = [&](const DeepSpeedSetting& setting, Source source) {
    walk_collecting(setting.key, setting.value, {setting.name, setting.where, source, rank});
  };
  for (const DeepSpeedSetting& setting : config.settings) add(setting, Source::deepspeed);
  const auto searches = values_.find("offload.auto");  // What is not said is searched for.
  if (searches != values_.end() && normalised_value(searches->second.value) == "true") return;
  for (const DeepSpeedSetting& setting : config.implied) add(setting, Source::deepspeed_default);
}

void Settings::record(const std::string& key, const YAML::Node& value, const Place& place) {
  const auto known = values_.find(key);
  if (known != values_.end() && place.source == Source::deepspeed_default) return;
  if (known != values_.end() && place.source == Source::deepspeed)
    return check_agreement(key, known->second,
                           {value, place.name, place.where, place.source, place.rank});
  if (known != values_.end() && known->second.source == Source::file &&
      place.source == Source::file) {
    const bool is_from_table =
        known->second.name == optimizer_table && place.name != optimizer_table;
    if (!is_from_table) {
      throw ConfigError(fmt::format("'{}' {} was already set as '{}' {}", place.name, place.where,
                                    known->second.name, known->second.where));
    }
  }
  values_.erase(key);
  if (!value.IsNull()) values_[key] = {value, place.name, place.where, place.source, place.rank};
}

}  // namespace strata
