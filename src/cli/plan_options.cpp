#include "cli/plan_options.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/config_value.hpp"
#include "cli/run_options.hpp"
#include "strata/cli/config.hpp"
#include "strata/cli/machine_file.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Which config file, and which settings on top of it.
struct ConfigSources {
  std::string file;
  std::vector<std::string> overrides;
};

bool is_setting(const std::string& word) { return word.find('=') != std::string::npos; }

ConfigSources sources_of(const PlanOptions& options) {
  ConfigSources sources{options.config, options.words};
  if (!options.model.empty())
    sources.overrides.push_back("model_name_or_path=" + yaml_text(options.model));
  const bool has_file = !options.words.empty() && !is_setting(options.words.front());
  if (!has_file) return sources;
  if (!options.config.empty())
    throw ConfigError(
        fmt::format("two config files: --config {} and {}", options.config, options.words.front()));
  sources.file = options.words.front();
  sources.overrides.erase(sources.overrides.begin());
  return sources;
}

// The config's paths are this machine's; the other one has drives of its own.
void use_drives_of(const MachineProfile& machine, std::vector<std::string>& overrides) {
  std::string names;
  for (std::size_t drive = 0; drive < std::max<std::size_t>(1, machine.drives.size()); ++drive)
    names += fmt::format("{}drive{}", drive == 0 ? "" : ", ", drive);
  overrides.push_back("offload.nvme_paths=[" + names + "]");
}

RunConfig read_sources(const ConfigSources& sources) {
  if (sources.file.empty()) return parse_config("", "the command line", sources.overrides);
  if (!std::filesystem::is_regular_file(sources.file))
    throw ConfigError(fmt::format("{}: no such config file", sources.file));
  return read_config(sources.file, sources.overrides);
}

// Weights that are as many as the machine's drives are taken to be theirs.
RunConfig read_for(const MachineProfile& machine, ConfigSources sources) {
  use_drives_of(machine, sources.overrides);
  try {
    return read_sources(sources);
  } catch (const ConfigError&) {  // Other errors than that of too few weights come again.
    sources.overrides.push_back("offload.nvme_weights=null");
    RunConfig config = read_sources(sources);
    config.warnings.push_back(
        fmt::format("offload.nvme_weights are not of the {} drives of {}: planned with as much on "
                    "each",
                    machine.drives.size(), machine.name));
    return config;
  }
}

}  // namespace

std::shared_ptr<PlanOptions> add_plan_options(CLI::App& command) {
  auto options = std::make_shared<PlanOptions>();
  PlanOptions& o = *options;
  command.add_option("config_and_settings", o.words,
                     "CONFIG.yaml (or --config), then key=value: offload.optimizer.nvme=0.5");
  command.add_option("--config", o.config, "YAML file with the run's settings (docs/config.md)");
  command.add_option("--model", o.model,
                     "Hugging Face model folder, in place of the config's; config.json suffices");
  command.add_option("--machine", o.machine,
                     "Plan for this machine (configs/machines, or measured by bench all) and "
                     "predict its speed");
  command.add_flag("--auto", o.searches,
                   "Find the fastest plan that fits the machine instead of the config's");
  command.add_flag("--what-if", o.tabulates,
                   "Also tabulate neighbours: where the optimizer lives, other batches");
  command.add_flag("--print-config", o.prints_config,
                   "Print the resolved config with the origin of each value, and plan nothing");
  command.add_option("--json", o.json, "Also write the whole plan, ops and edges included");
  command.add_option("--trace", o.trace,
                     "Also write the predicted step as a trace for ui.perfetto.dev");
  command.add_option("--svg", o.svg, "Also draw memory and lanes over the predicted step");
  return options;
}

std::optional<MachineProfile> plan_machine(const PlanOptions& options) {
  if (!options.machine.empty()) return read_machine_file(options.machine);
  const std::pair<bool, const char*> asked[] = {{options.searches, "--auto"},
                                                {options.tabulates, "--what-if"},
                                                {!options.trace.empty(), "--trace"},
                                                {!options.svg.empty(), "--svg"}};
  for (const auto& [is_asked, name] : asked)
    if (is_asked)
      throw ConfigError(fmt::format(
          "{} predicts times, so it needs --machine FILE: one of configs/machines, or this machine "
          "measured by strata bench all --write-profile FILE",
          name));
  return std::nullopt;
}

RunConfig asked_config(const PlanOptions& options) { return read_sources(sources_of(options)); }

RunConfig plan_config(const PlanOptions& options, const MachineProfile* machine) {
  const ConfigSources sources = sources_of(options);
  const RunConfig config = machine == nullptr ? read_sources(sources) : read_for(*machine, sources);
  print_notes(config);
  check_train_batch_size(config, machine != nullptr ? machine->ranks : config.world);
  check_model(config, sources.file.empty() ? "strata plan" : sources.file);
  return config;
}

}  // namespace strata
