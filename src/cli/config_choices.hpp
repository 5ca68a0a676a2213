#pragma once
// The names that values of a config are chosen from: those advertised, those accepted beside them,
// and those known from other programs that cannot be had, each with the reason.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config_names.hpp"
#include "config_value.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

template <typename T>
struct Choices {
  std::vector<std::pair<std::string, T>> names;
  std::vector<std::pair<std::string, T>> aliases;  // accepted, not advertised
  // Known names that cannot be had, with the reason. May end in '*'.
  std::vector<std::pair<std::string, std::string>> refusals;

  std::string joined() const {
    std::string text;
    for (const auto& [name, unused] : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }
  T parse(const ConfigValue& value) const {
    const std::string text = value.text();
    for (const auto* list : {&names, &aliases}) {
      for (const auto& [name, choice] : *list) {
        if (name == text) return choice;
      }
    }
    for (const auto& [name, reason] : refusals) {
      if (matches_name(name, text))
        value.fail(fmt::format("'{}' is not supported: {}", text, reason));
    }
    value.fail(fmt::format("'{}' is not one of {}", text, joined()));
  }
  std::string name_of(const T& choice) const {
    for (const auto& [name, known] : names) {
      if (known == choice) return yaml_text(name);
    }
    return "null";
  }
};

// eval_strategy: RunConfig::evaluate and eval_each_epoch in one.
enum class EvalMoments : std::uint8_t { never, by_steps, by_epochs };

extern const Choices<RowLayout> layouts;
extern const Choices<UpdateRule> optimizers;
extern const Choices<MasterFormat> master_formats;
extern const Choices<DType> moment_formats;
extern const Choices<std::optional<DType>> export_dtypes;
extern const Choices<ScheduleKind> schedules;
extern const Choices<EvalMoments> eval_strategies;
extern const Choices<NonFinitePolicy> non_finite_policies;
extern const Choices<SaveStrategy> save_strategies;
extern const Choices<BestMetric> best_metrics;
extern const Choices<SaveFailurePolicy> save_failure_policies;
extern const Choices<KernelsKind> kernel_kinds;
extern const Choices<DeviceKind> device_kinds;

}  // namespace strata
