#include "strata/cli/machine_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "cli/config_value.hpp"
#include "cli/machine_fields.hpp"
#include "cli/machine_table.hpp"
#include "cli/yaml_document.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "strata/measure/adam_passes.hpp"

namespace strata {
namespace {

constexpr std::uint64_t file_bytes_max = 1 << 20;
constexpr std::int64_t ranks_max = 1024, cores_max = 1'000'000;
constexpr std::size_t drives_max = 1024, rates_max = 1000;

using Sources = std::map<std::string, std::string>;

double positive_quantity(const ConfigValue& value, Quantity quantity) {
  try {
    const double number = parse_quantity(value.text(), quantity);
    if (number > 0) return number;
  } catch (const ConfigError& error) {
    value.fail(error.what());
  }
  value.fail(fmt::format("'{}' is not above 0", value.text()));
}

template <class Number>
Number number_as(double value) {
  if constexpr (std::is_integral_v<Number>) return static_cast<Number>(std::llround(value));
  return static_cast<Number>(value);
}

std::vector<std::string> layout_names() {
  std::vector<std::string> names;
  for (const AdamLayout& layout : all_state_layouts(UpdateRule::adamw))
    names.push_back(state_layout_name(layout));
  return names;
}

// Reads the fields of one table into a part of the profile.
class MachineReader {
 public:
  MachineReader(MachineTable table, Sources& sources)
      : table_(std::move(table)), sources_(sources) {}

  void text(const char* key, std::string& target) { target = table_.required(key).plain_text(); }

  void ranks(const char* key, int& target) {
    target = static_cast<int>(table_.required(key).value().integer({1, ranks_max}));
  }

  template <class Number>
  void value(const char* key, Number& target, Quantity quantity, Need need = Need::required) {
    const auto value = sourced(key, need);
    if (value) target = number_as<Number>(positive_quantity(*value, quantity));
  }
  void value(const char* key, int& target) {
    target = static_cast<int>(sourced(key, Need::required)->integer({1, cores_max}));
  }

  void matmul_rates(const char* key, std::vector<MatmulRate>& target);
  void update_rates(const char* key, std::map<std::string, UpdateProfile>& target);
  void drives(const char* key, std::vector<DriveProfile>& target);

  template <class Visit>
  void section(const char* key, Visit&& visit, Need need = Need::required) {
    const auto entry = need == Need::required ? table_.required(key) : table_.find(key);
    if (!entry) return;
    MachineReader inner(entry->table(), sources_);
    visit(inner);
    inner.finish();
  }

  void finish() const { table_.refuse_unknown(); }

 private:
  std::optional<ConfigValue> sourced(const char* key, Need need) {
    const auto entry = need == Need::required ? table_.required(key) : table_.find(key);
    if (!entry) return std::nullopt;
    return value_of(*entry);
  }
  ConfigValue value_of(const MachineEntry& entry) {
    return ConfigValue(value_entry(entry).node(), entry.key(), entry.where());
  }
  // The entry below "value:", its source kept.
  MachineEntry value_entry(const MachineEntry& entry) {
    MachineTable table = entry.table();
    const MachineEntry value = table.required("value");
    sources_[entry.key()] = table.required("source").plain_text();
    table.refuse_unknown();
    return value;
  }
  MatmulRate matmul_rate(const MachineEntry& entry) const;
  void drive_group(const MachineEntry& entry, std::vector<DriveProfile>& target);

  MachineTable table_;
  Sources& sources_;
};

MatmulRate MachineReader::matmul_rate(const MachineEntry& entry) const {
  MachineTable table = entry.table();
  const auto flops = table.required("flops"), rate = table.required("rate");
  table.refuse_unknown();
  return {positive_quantity(flops.value(), Quantity::flops),
          positive_quantity(rate.value(), Quantity::flops_per_s)};
}

void MachineReader::matmul_rates(const char* key, std::vector<MatmulRate>& target) {
  const auto entry = table_.find(key);
  if (!entry) return;
  for (const MachineEntry& item : value_entry(*entry).list(rates_max)) {
    target.push_back(matmul_rate(item));
    const bool rises = target.size() < 2 || target.back().flops > target.end()[-2].flops;
    if (!rises) item.fail("the sizes do not rise");
  }
}

void MachineReader::update_rates(const char* key, std::map<std::string, UpdateProfile>& target) {
  const auto entry = table_.find(key);
  if (!entry) return;
  MachineTable table = entry->table();
  for (const std::string& name : layout_names()) {
    const auto rate = table.find(name);
    if (rate)
      target[name].params_per_s = positive_quantity(value_of(*rate), Quantity::params_per_s);
  }
  table.refuse_unknown();
}

void MachineReader::drives(const char* key, std::vector<DriveProfile>& target) {
  const auto entry = table_.find(key);
  if (!entry) return;
  for (const MachineEntry& item : entry->list(drives_max)) drive_group(item, target);
}

// One drive, or several that are alike: their sources are kept for each.
void MachineReader::drive_group(const MachineEntry& entry, std::vector<DriveProfile>& target) {
  MachineTable table = entry.table();
  const auto stated = table.find("count");
  const auto room = static_cast<std::int64_t>(drives_max - target.size());
  const std::int64_t count = stated ? stated->value().integer({1, room}) : 1;
  if (room == 0) entry.fail(fmt::format("more than {} drives", drives_max));
  DriveProfile drive;
  Sources sources;
  MachineReader reader(std::move(table), sources);
  visit_drive(reader, drive);
  reader.finish();
  for (std::int64_t i = 0; i < count; ++i) {
    for (const auto& [key, source] : sources)
      sources_[drive_prefix(target.size()) + key.substr(key.rfind('.') + 1)] = source;
    target.push_back(drive);
  }
}

void check_machine(const MachineProfile& machine, const std::string& source_name) {
  const LinkProfile& link = machine.link;
  if (machine.accelerator.bf16.empty() && machine.accelerator.f32.empty())
    throw ConfigError(fmt::format(
        "{}: neither accelerator.bf16 nor accelerator.f32 has a rate of products", source_name));
  if (link.both_bytes_per_s > link.up_bytes_per_s + link.down_bytes_per_s)
    throw ConfigError(fmt::format(
        "{}: link.both_bytes_per_s {} is more than up and down together, {}", source_name,
        format_quantity(link.both_bytes_per_s, Quantity::bytes_per_s),
        format_quantity(link.up_bytes_per_s + link.down_bytes_per_s, Quantity::bytes_per_s)));
}

}  // namespace

MachineProfile parse_machine_file(const std::string& yaml, const std::string& source_name) {
  const YAML::Node root = load_yaml(yaml, source_name);
  MachineProfile machine;
  MachineReader reader(MachineEntry(root, "", source_name).table(), machine.sources);
  visit_machine(reader, machine);
  reader.finish();
  check_machine(machine, source_name);
  return machine;
}

MachineProfile read_machine_file(const std::filesystem::path& path) {
  return parse_machine_file(read_text_file(path, file_bytes_max), path.string());
}

std::string drive_prefix(std::size_t drive) { return fmt::format("drives[{}].", drive); }

}  // namespace strata
