#pragma once
// The few steps of a run that go to a trace file. Thread contract: one thread.

#include <cstdint>
#include <optional>
#include <string>

#include "strata/runtime/executor.hpp"
#include "strata/telemetry/trace.hpp"
#include "strata/train/planned_run.hpp"
#include "strata/train/trainer.hpp"

namespace strata {

class StepTrace {
 public:
  // Of `total_steps`, options.trace_steps from the third on, or as many later as there are.
  // `options.trace` may be null: nothing is traced.
  StepTrace(const TrainerOptions& options, const PlannedRun& run, std::int64_t total_steps);

  // A step that completed, by StepArgs::index, in order, and its schedule.
  void step(const Schedule& schedule, const CompletedStep& step);
  // The run ends, whatever was traced: what this rank has to say is in the file, which other ranks
  // may still write to. Returns what went wrong with it; empty: nothing.
  std::string finish();

 private:
  void begin(double at_s);

  TraceFile* file_;
  std::int64_t first_ = 0, end_ = 0;  // indexes
  const PlannedRun& run_;
  const std::optional<Simulation> predicted_;
  std::optional<StepTracer> tracer_;
};

}  // namespace strata
