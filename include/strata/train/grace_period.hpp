#pragma once
// How long a run takes to end when it is told to, against what the scheduler gives it between
// SIGTERM and SIGKILL (grace_period). It ends the step under way, then writes a checkpoint while
// nothing else runs; a run that saves no state exports its weights instead. Where that takes
// longer, it is tried nevertheless: a run that is killed meanwhile has its last checkpoint. Thread
// contract: pure.

#include <string>

#include "strata/plan/machine.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

struct StopTime {
  double step_seconds = 0, save_seconds = 0;  // 0: not known
  bool needs_no_save = false;                 // every step is durable
  bool is_known() const { return step_seconds > 0 && (needs_no_save || save_seconds > 0); }
  double seconds() const { return step_seconds + save_seconds; }
};

// At most, with the longest step and a fifth on top of all. The save reads what lies on NVMe,
// writes new files on the machine's saving_drive() and reads them back: told as if nothing of this
// was done at the same time.
StopTime predicted_stop(const RunConfig& config, const PlannedRun& run, double step_seconds,
                        const MachineProfile& machine);
// The longest step is one that had just begun when the run was told, until its last op is complete:
// between others as it was simulated, or one that hands its state to a checkpoint, where the plan
// has such.
StopTime predicted_stop(const RunConfig& config, const PlannedRun& run, const Simulation& simulated,
                        const MachineProfile& machine);

// "stop     12.4 s at most: 7.92 s to end a step, 4.51 s to save; fits in grace_period: 30", one
// line.
std::string format_stop(const StopTime& stop, double grace_period);
// Empty when it fits, or when one of them is not known. `source`: "predicted".
std::string grace_warning(const StopTime& stop, double grace_period, const std::string& source);

}  // namespace strata
