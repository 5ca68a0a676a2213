#pragma once
// Where the time of a run's steps went: for each step's report, for the roofline at the end, and
// for a trace. Thread contract: one thread, the executor's.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "strata/runtime/executor.hpp"
#include "strata/telemetry/progress.hpp"
#include "strata/telemetry/roofline.hpp"
#include "strata/train/planned_run.hpp"
#include "strata/train/trainer.hpp"
#include "train/step_trace.hpp"

namespace strata {

class StepRecorder {
 public:
  // Its times count from here.
  StepRecorder(const TrainerOptions& options, const Executor& executor, const PlannedRun& run,
               std::int64_t total_steps);

  // The wall time of the step with this StepArgs::index. Each step, in order.
  void took(std::int64_t index, double seconds);
  // Looks at the steps that completed since the last call: at most two, whenever one more step's
  // result is there or the executor was drained.
  void collect();
  // What is known of the last step that completed; nothing before the first.
  void describe(StepReport& report) const;

  Roofline roofline() const;
  // Returns what went wrong with the trace; empty: nothing.
  std::string close_trace() { return trace_.close(); }

 private:
  void note(const CompletedStep& step);
  double seconds_of(std::int64_t index) const { return seconds_[slot(index)]; }
  static std::size_t slot(std::int64_t index) { return static_cast<std::size_t>(index % 4); }

  const Executor& executor_;
  const Schedule& schedule_;
  const PerResource<std::uint64_t> bytes_;
  const std::int64_t origin_ns_;
  StepTrace trace_;
  std::optional<Roofline::Prediction> predicted_;
  UseHistory history_;
  std::array<double, 4> seconds_{};  // wall time of the last steps
  StepTiming timing_;                // of the last complete one
  StepUse use_;                      // likewise
};

}  // namespace strata
