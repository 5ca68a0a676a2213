#include "strata/plan/search.hpp"
#include "strata/train/auto_plan.hpp"
#include "strata/train/forecast.hpp"

namespace strata {
Scenario fastest_scenario(const Scenario& start, const MachineProfile& machine) {
  const PlannedRun run = declare_run(start.config, start.choice.variant);
  const auto declare = [&](const ProgramVariant& variant) {
    return declare_program(start.config, Purpose::train, *run.model, variant);
  };
  try {
    const SearchResult found =
        search(declare, run_limits(start.config, machine), machine,
               {start.choice.variant, start.choice.policy}, search_space(start.config));
    return {start.config, {found.variant, found.policy}};
  } catch (const TierOverflow& refusal) {
    throw advised(refusal, start.config);
  }
}

}  // namespace strata
