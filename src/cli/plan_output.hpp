#pragma once
// What `strata plan` prints and writes of a forecast.

#include <optional>
#include <string>

#include "cli/plan_options.hpp"
#include "strata/train/forecast.hpp"

namespace strata {

// "NVMe     847 GB written per step": what wears drives. Empty: nothing.
std::string format_step_writes(const PlannedRun& run);
// The report, in the order in which it is read: whether it fits and how fast, what lives where,
// where the time goes, what it costs the drives.
void print_forecast(const RunConfig& config, const MachineProfile& machine,
                    const Forecast& forecast);
void print_improvements(const Scenario& from, const std::vector<Improvement>& found);
void print_what_if(const Scenario& scenario, const Forecast& now, const MachineProfile& machine);
// --json, --trace, --svg.
void write_files(const PlanOptions& options, const RunConfig& config, const Forecast& forecast);

}  // namespace strata
