#pragma once
// Where the time of a run's steps went: for each step's report, for the roofline at the end, and
// for a trace. Thread contract: one thread, the executor's.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

  // The result of the step with this StepArgs::index came just now, `seconds` after that of the
  // step before. Each step, in order.
  void took(std::int64_t index, double seconds);
  // Looks at the steps that completed since the last call: at most two, whenever one more step's
  // result is there or the executor was drained.
  void collect();
  // Something else runs between the last step and the next. After a drain and collect().
  void pause() { before_.clear(); }
  // What is known of the last step that completed; nothing before the first.
  void describe(StepReport& report) const;

  Roofline roofline() const;
  // Returns what went wrong with the trace; empty: nothing.
  std::string close_trace() { return trace_.close(); }

 private:
  void note(CompletedStep step);
  void note_waits(const CompletedStep& step);
  static std::size_t slot(std::int64_t index) { return static_cast<std::size_t>(index % 4); }

  const Executor& executor_;
  const Plan& plan_;
  const Schedule& schedule_;
  const PerResource<std::uint64_t> bytes_;
  const std::int64_t origin_ns_;
  StepTrace trace_;
  std::optional<Roofline::Prediction> predicted_;
  UseHistory history_;
  struct Wall {
    double seconds = 0, end = 0;
  };
  std::array<Wall, 4> walls_{};  // of the last steps
  BusyTime busy_;
  // Of the last complete step.
  StepTiming timing_;
  StepUse use_;
  std::array<double, num_lanes> waits_{};  // of the compute lane, by the lane that was late
  std::vector<OpTime> before_;             // empty: the next step follows on none
};

}  // namespace strata
