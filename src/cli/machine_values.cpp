#include "cli/machine_values.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/machine_fields.hpp"
#include "strata/core/text_table.hpp"

namespace strata {
namespace {

constexpr int schema_version = 1;

// Gathers the numbers of one table; `prefix` is the way to it, "link.".
class MachineLister {
 public:
  MachineLister(const MachineProfile& machine, std::string prefix,
                std::vector<MachineValue>& values)
      : machine_(machine), prefix_(std::move(prefix)), values_(values) {}

  void text(const char*, const std::string&) {}
  void ranks(const char*, int) {}

  template <class Number>
  void value(const char* key, Number value, Quantity quantity, Need need = Need::required) {
    if (need == Need::optional && value == 0) return;
    add(key, "", static_cast<double>(value), quantity);
  }
  void value(const char* key, int value) { add(key, "", value, Quantity::count); }

  void matmul_rates(const char* key, const std::vector<MatmulRate>& rates) {
    for (const MatmulRate& rate : rates)
      add(key, fmt::format("[{}]", rounded_quantity(rate.flops, Quantity::flops)), rate.flops_per_s,
          Quantity::flops_per_s);
  }
  void update_rates(const char* key, const std::map<std::string, UpdateProfile>& rates) {
    MachineLister inner(machine_, prefix_ + key + ".", values_);
    for (const auto& [name, rate] : rates)
      inner.value(name.c_str(), rate.params_per_s, Quantity::params_per_s);
  }
  void drives(const char*, const std::vector<DriveProfile>& drives) {
    for (std::size_t i = 0; i < drives.size(); ++i) {
      MachineLister inner(machine_, drive_prefix(i), values_);
      visit_drive(inner, drives[i]);
    }
  }
  template <class Visit>
  void section(const char* key, Visit&& visit, Need need = Need::required) {
    if (need == Need::optional) return;
    MachineLister inner(machine_, prefix_ + key + ".", values_);
    visit(inner);
  }

 private:
  void add(const char* key, const std::string& suffix, double value, Quantity quantity) {
    const auto source = machine_.sources.find(prefix_ + key);
    values_.push_back({prefix_ + key + suffix, value, quantity,
                       source == machine_.sources.end() ? "" : source->second});
  }

  const MachineProfile& machine_;
  const std::string prefix_;
  std::vector<MachineValue>& values_;
};

}  // namespace

std::vector<MachineValue> machine_values(const MachineProfile& machine) {
  std::vector<MachineValue> values;
  MachineLister lister(machine, "", values);
  visit_machine(lister, machine);
  return values;
}

std::string machine_table(const MachineProfile& machine) {
  TextTable table({{"value"}, {"", TextTable::Align::right}});
  for (const MachineValue& value : machine_values(machine))
    table.add_row({value.key, rounded_quantity(value.value, value.quantity)});
  return fmt::format("{}, {} rank{}\n\n{}", machine.name, machine.ranks,
                     machine.ranks == 1 ? "" : "s", table.text());
}

std::string machine_json(const MachineProfile& machine) {
  nlohmann::ordered_json document = {{"format", "strata-machine"},
                                     {"schema_version", schema_version},
                                     {"name", machine.name},
                                     {"ranks", machine.ranks},
                                     {"values", nlohmann::ordered_json::object()}};
  for (const MachineValue& value : machine_values(machine))
    document["values"][value.key] = {{"value", value.value}, {"source", value.source}};
  return document.dump(2) + "\n";
}

}  // namespace strata
