#include "strata/train/predicted_step.hpp"

namespace strata {

std::optional<Simulation> predict_step(const PlannedRun& run,
                                       const std::optional<MachineProfile>& machine) {
  if (!machine) return {};
  return simulate(run.program, run.plan, "train", *machine);
}

}  // namespace strata
