#include "train/step_recorder.hpp"

#include <algorithm>
#include <utility>

#include "strata/core/clock.hpp"

namespace strata {
namespace {

constexpr std::int64_t warm_up_steps = 2;

// By what the user can change; nothing for the compute lane itself.
std::string wait_name(Lane lane) {
  switch (lane) {
    case Lane::read:
    case Lane::state_read:
    case Lane::write:
    case Lane::state_write:
      return "nvme";
    case Lane::h2d:
    case Lane::state_h2d:
      return "h2d";
    case Lane::d2h:
    case Lane::state_d2h:
      return "d2h";
    case Lane::update:
      return "update";
    case Lane::comm:
      return "comm";
    case Lane::compute:
      break;
  }
  return "";
}

using Named = std::vector<std::pair<std::string, double>>;

void add_wait(Named& waits, const std::string& name, double added) {
  const auto found = std::ranges::find(waits, name, &Named::value_type::first);
  if (found == waits.end())
    waits.emplace_back(name, added);
  else
    found->second += added;
}

Named busy_of(const StepTiming& timing) {
  Named busy;
  for (int lane = 0; lane < num_lanes; ++lane) {
    const double s = seconds(timing.busy_ns[static_cast<std::size_t>(lane)]);
    if (s > 0) busy.emplace_back(lane_name(static_cast<Lane>(lane)), s);
  }
  return busy;
}

// Those that are worth a look: at least a hundredth of the step, and more than 0.00 on the line.
Named waits_of(const StepTiming& timing, double step_seconds) {
  Named waits;
  for (int lane = 0; lane < num_lanes; ++lane) {
    const std::string name = wait_name(static_cast<Lane>(lane));
    if (!name.empty())
      add_wait(waits, name, seconds(timing.compute_wait_ns[static_cast<std::size_t>(lane)]));
  }
  std::erase_if(
      waits, [&](const auto& wait) { return wait.second < std::max(0.01 * step_seconds, 0.005); });
  return waits;
}

// value(resource) of each resource that has one.
template <typename Value>
Named by_resource(Value value) {
  Named named;
  for (std::size_t i = 0; i < num_resources; ++i)
    if (const double v = value(i); v > 0)
      named.emplace_back(resource_key(static_cast<Resource>(i)), v);
  return named;
}

StepUse use_of(const Schedule& schedule, const CompletedStep& step, double step_seconds) {
  StepUse use;
  use.seconds = step_seconds;
  use.busy = busy_seconds(schedule, step.ops);
  for (std::size_t lane = 0; lane < num_lanes; ++lane) {
    const Resource resource = resource_of_lane(static_cast<Lane>(lane));
    if (resource != Resource::compute)
      use.waits[static_cast<std::size_t>(resource)] += seconds(step.timing.compute_wait_ns[lane]);
  }
  return use;
}

}  // namespace

StepRecorder::StepRecorder(const TrainerOptions& options, const Executor& executor,
                           const PlannedRun& run, std::int64_t total_steps)
    : executor_(executor),
      schedule_(*run.plan.schedule("train")),
      bytes_(moved_bytes(run.plan, schedule_)),
      origin_ns_(now_ns()),
      trace_(options, run, total_steps) {
  if (options.predicted) predicted_ = prediction_of(schedule_, *options.predicted);
}

void StepRecorder::took(std::int64_t index, double step_seconds) {
  seconds_[slot(index)] = step_seconds;
}

void StepRecorder::collect() {
  while (const auto step = executor_.completed_step(schedule_.name, timing_.index + 1, origin_ns_))
    note(*step);
}

void StepRecorder::note(const CompletedStep& step) {
  timing_ = step.timing;
  use_ = use_of(schedule_, step, seconds_of(timing_.index));
  if (timing_.index >= warm_up_steps) history_.add(use_);
  trace_.step(step);
}

void StepRecorder::describe(StepReport& report) const {
  report.waits = waits_of(timing_, report.seconds);
  report.busy = busy_of(timing_);
  report.timing_step = timing_.index + 1;
  report.nvme_bytes_read = timing_.nvme_bytes_read;
  report.nvme_bytes_written = timing_.nvme_bytes_written;
  if (timing_.index < 0 || use_.seconds <= 0) return;
  report.used = by_resource([&](std::size_t i) { return use_.busy[i] / use_.seconds; });
  report.rates = by_resource([&](std::size_t i) {
    return use_.busy[i] > 0 ? static_cast<double>(bytes_[i]) / use_.busy[i] : 0;
  });
  if (!predicted_) return;
  report.roofline =
      by_resource([&](std::size_t i) { return predicted_->full_rate[i] / use_.seconds; });
  report.of_bound = predicted_->bound_seconds() / use_.seconds;
}

Roofline StepRecorder::roofline() const {
  return {history_.num_steps(), history_.median(), bytes_, predicted_};
}

}  // namespace strata
