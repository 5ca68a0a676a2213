#pragma once
// The command line of `strata plan`.

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/plan/machine.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

struct PlanOptions {
  std::vector<std::string> words;  // CONFIG.yaml and key=value, as they come
  std::string config, model, machine, json, trace, svg;
  bool searches = false, tabulates = false, prints_config = false;
};

std::shared_ptr<PlanOptions> add_plan_options(CLI::App& command);

// The machine that --machine names; nothing: this one, about which only its memory is known. Throws
// ConfigError when another option needs a machine.
std::optional<MachineProfile> plan_machine(const PlanOptions& options);
// The config with --model, whatever its worth. Throws ConfigError.
RunConfig asked_config(const PlanOptions& options);
// The config with --model and, on another machine, its drives in place of the config's paths.
// Prints its warnings. Throws ConfigError.
RunConfig plan_config(const PlanOptions& options, const MachineProfile* machine);

}  // namespace strata
