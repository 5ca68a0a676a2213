#pragma once
// What the simulator says of a run's training step. Thread contract: pure.

#include <optional>

#include "strata/plan/machine.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// None without a machine. Throws ConfigError when the plan needs what the machine lacks.
std::optional<Simulation> predict_step(const PlannedRun& run,
                                       const std::optional<MachineProfile>& machine);

}  // namespace strata
