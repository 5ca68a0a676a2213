#include "train/step_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "train/step_recorder.hpp"

namespace strata {
namespace {

double earliest(const std::vector<OpTime>& times) {
  double start = std::numeric_limits<double>::infinity();
  for (const OpTime& time : times) start = std::min(start, time.start);
  return start;
}

// A run that goes on from a checkpoint has first steps too.
std::int64_t first_traced(const TrainerOptions& options, std::int64_t total_steps) {
  const std::int64_t begin = options.resume == nullptr ? 0 : options.resume->step;
  const std::int64_t spare = total_steps - begin - options.trace_steps;
  return begin + std::clamp(spare, std::int64_t{0}, warm_up_steps);
}

}  // namespace

StepTrace::StepTrace(const TrainerOptions& options, const PlannedRun& run, std::int64_t total_steps)
    : file_(options.trace),
      first_(first_traced(options, total_steps)),
      end_(first_ + options.trace_steps),
      run_(run),
      predicted_(options.predicted) {}

void StepTrace::step(const Schedule& schedule, const CompletedStep& step) {
  if (file_ == nullptr || step.timing.index < first_ || step.timing.index >= end_) return;
  if (!tracer_) begin(earliest(step.ops));
  tracer_->step(schedule, step.ops, 0, step.timing.index + 1);
  if (step.timing.index + 1 == end_) tracer_->finish();
}

// A process by rank; what was predicted stands behind all of them, beside the first step.
void StepTrace::begin(double at_s) {
  const Schedule& schedule = *run_.plan.schedule("train");
  const int process = run_.program.rank, predicted_process = run_.program.world;
  file_->name_process(process, fmt::format("rank {}", run_.program.rank));
  tracer_.emplace(*file_, process, run_.program, run_.plan, schedule);
  if (!predicted_) return;
  file_->name_process(predicted_process, fmt::format("rank {}, predicted", run_.program.rank));
  trace_steps(*file_, predicted_process, run_.program, run_.plan, schedule, predicted_->ops, at_s,
              predicted_->step_seconds);
}

std::string StepTrace::finish() {
  if (file_ == nullptr) return "";
  if (tracer_) tracer_->finish();
  const std::string failure = file_->failure();
  return failure.empty() ? "" : failure + "; the trace ends early";
}

}  // namespace strata
