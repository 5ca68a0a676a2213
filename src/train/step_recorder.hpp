#pragma once
// Where the time of a run's steps went: for each step's report, for the roofline at the end, and
// for a trace. Thread contract: one thread, the executor's.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/runtime/executor.hpp"
#include "strata/telemetry/progress.hpp"
#include "strata/telemetry/roofline.hpp"
#include "strata/train/planned_run.hpp"
#include "strata/train/trainer.hpp"
#include "train/step_trace.hpp"

namespace strata {

constexpr std::int64_t warm_up_steps = 2;  // of a run: times and traces leave them out

class StepRecorder {
 public:
  // Its times count from here.
  StepRecorder(const TrainerOptions& options, const Executor& executor, const PlannedRun& run,
               std::int64_t total_steps);

  // The result of the step with this StepArgs::index came just now, `seconds` after that of the
  // step before. Each step, in order; the first may have any index.
  void took(std::int64_t index, double seconds, std::string_view schedule);
  // Looks at the steps that completed since the last call: at most two, whenever one more step's
  // result is there or the executor was drained.
  void collect();
  // Something else runs between the last step and the next. After a drain and collect().
  void pause() { before_.clear(); }
  // What is known of the last step that completed; nothing before the first.
  void describe(StepReport& report) const;

  Roofline roofline() const;
  // Returns what went wrong with the trace; empty: nothing.
  std::string finish_trace() { return trace_.finish(); }

 private:
  // "train", or the same steps doing something else beside.
  struct Kind {
    const Schedule* schedule = nullptr;
    PerResource<std::uint64_t> bytes{};
  };
  // A step's, from result to result.
  struct Wall {
    double seconds = 0, end = 0;
    const Kind* kind = nullptr;
  };

  const Kind& kind_of(std::string_view schedule) const;
  void note(const Wall& wall, CompletedStep step);
  void note_waits(const CompletedStep& step);
  static std::size_t slot(std::int64_t index) { return static_cast<std::size_t>(index % 4); }

  const Executor& executor_;
  const Plan& plan_;
  const Schedule& schedule_;
  std::vector<Kind> kinds_;  // the first is that of schedule_
  const std::int64_t origin_ns_;
  StepTrace trace_;
  std::optional<Roofline::Prediction> predicted_;
  UseHistory history_;
  std::array<Wall, 4> walls_{};  // of the last steps
  // Indexes of the run's first step and of the one that completes next; -1: none was there yet.
  std::int64_t first_ = -1, next_ = -1;
  BusyTime busy_;
  // Of the last complete step.
  StepTiming timing_;
  StepUse use_;
  std::array<double, num_lanes> waits_{};  // of the compute lane, by the lane that was late
  const Kind* kind_ = nullptr;             // its
  std::vector<OpTime> before_;             // empty: the next step follows on none
};

}  // namespace strata
