#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/config_value.hpp"
#include "cli/machine_fields.hpp"
#include "strata/cli/machine_file.hpp"

namespace strata {
namespace {

// A drive's facts, with their sources: those that follow each other and are alike are one entry.
struct DriveText {
  std::string text;
  std::size_t count = 1;
};

// Writes the fields of one table; `prefix` is the way to it, "link.".
class MachineWriter {
 public:
  MachineWriter(const MachineProfile& machine, std::string prefix, int indent)
      : machine_(machine), prefix_(std::move(prefix)), indent_(indent) {}

  void text(const char* key, const std::string& value) { line(key, yaml_text(value)); }
  void ranks(const char* key, int value) { line(key, fmt::format("{}", value)); }

  template <class Number>
  void value(const char* key, Number value, Quantity quantity, Need need = Need::required) {
    if (need == Need::optional && value == 0) return;
    sourced(key, format_quantity(static_cast<double>(value), quantity));
  }
  void value(const char* key, int value) { sourced(key, fmt::format("{}", value)); }

  void matmul_rates(const char* key, const std::vector<MatmulRate>& rates) {
    if (rates.empty()) return;
    line(key, "");
    text_ += fmt::format("{:{}}source: {}\n", "", indent_ + 2, yaml_text(source_of(key)));
    text_ += fmt::format("{:{}}value:\n", "", indent_ + 2);
    for (const MatmulRate& rate : rates)
      text_ += fmt::format("{:{}}- {{flops: {}, rate: {}}}\n", "", indent_ + 4,
                           format_quantity(rate.flops, Quantity::flops),
                           format_quantity(rate.flops_per_s, Quantity::flops_per_s));
  }

  void update_rates(const char* key, const std::map<std::string, UpdateProfile>& rates) {
    if (rates.empty()) return;
    section(key, [&](MachineWriter& inner) {
      for (const auto& [name, rate] : rates)
        inner.value(name.c_str(), rate.params_per_s, Quantity::params_per_s);
    });
  }

  void drives(const char* key, const std::vector<DriveProfile>& drives) {
    if (drives.empty()) return;
    line(key, "");
    for (const DriveText& group : groups_of(drives))
      text_ += fmt::format("  - count: {}\n{}", group.count, group.text);
  }

  template <class Visit>
  void section(const char* key, Visit&& visit, Need need = Need::required) {
    if (need == Need::optional) return;
    MachineWriter inner(machine_, prefix_ + key + ".", indent_ + 2);
    visit(inner);
    line(key, "");
    text_ += inner.text_;
  }

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view key, const std::string& value) {
    text_ += fmt::format("{:{}}{}:{}{}\n", "", indent_, key, value.empty() ? "" : " ", value);
  }
  void sourced(std::string_view key, const std::string& value) {
    line(key, fmt::format("{{value: {}, source: {}}}", value, yaml_text(source_of(key))));
  }
  std::string source_of(std::string_view key) const {
    const auto found = machine_.sources.find(prefix_ + std::string(key));
    return found == machine_.sources.end() ? "not stated" : found->second;
  }
  std::vector<DriveText> groups_of(const std::vector<DriveProfile>& drives) const {
    std::vector<DriveText> groups;
    for (std::size_t i = 0; i < drives.size(); ++i) {
      MachineWriter inner(machine_, drive_prefix(i), 4);
      visit_drive(inner, drives[i]);
      if (!groups.empty() && groups.back().text == inner.text_)
        ++groups.back().count;
      else
        groups.push_back({inner.text_, 1});
    }
    return groups;
  }

  const MachineProfile& machine_;
  const std::string prefix_;
  const int indent_;
  std::string text_;
};

}  // namespace

std::string machine_file_text(const MachineProfile& machine) {
  MachineWriter writer(machine, "", 0);
  visit_machine(writer, machine);
  return writer.text();
}

}  // namespace strata
