#include "strata/plan/search.hpp"
#include "strata/train/auto_plan.hpp"
#include "strata/train/forecast.hpp"
#include "train/fit_judge.hpp"
#include "train/scenario_changes.hpp"

namespace strata {
namespace {

// Drives that the config does not weigh are used by their rates, where it names as many as there
// are.
Scenario with_weighed_drives(Scenario scenario, const MachineProfile& machine) {
  OffloadConfig& offload = scenario.config.offload;
  if (offload.nvme_weights.empty() && offload.nvme_paths.size() == machine.drives.size())
    offload.nvme_weights = weights_of_drives(machine);
  return scenario;
}

SearchResult search_from(const Scenario& start, const MachineProfile& machine) {
  const PlannedRun run = declare_run(start.config, start.choice.variant);
  const auto declare = [&](const ProgramVariant& variant) {
    return declare_program(start.config, Purpose::train, *run.model, variant);
  };
  return search(declare, limits_of(start, run, run_limits(start.config, machine)), machine,
                {start.choice.variant, start.choice.policy}, search_space(start.config));
}

}  // namespace

Scenario fastest_scenario(const Scenario& start, const MachineProfile& machine) {
  const Scenario weighed = with_weighed_drives(start, machine);
  try {
    const SearchResult found = search_from(weighed, machine);
    return {puts_on_drives(found.policy) ? weighed.config : start.config,
            {found.variant, found.policy}};
  } catch (const TierOverflow& refusal) {
    throw advised(refusal, start.config);
  }
}

}  // namespace strata
