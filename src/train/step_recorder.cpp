#include "train/step_recorder.hpp"

#include <algorithm>
#include <utility>

#include "strata/core/clock.hpp"
#include "train/step_gap.hpp"

namespace strata {
namespace {

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
    case Lane::save:
      return "save";
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
Named named_waits(const std::array<double, num_lanes>& lanes, double loop, double step_seconds) {
  Named waits;
  for (std::size_t lane = 0; lane < num_lanes; ++lane) {
    const std::string name = wait_name(static_cast<Lane>(lane));
    if (!name.empty()) add_wait(waits, name, lanes[lane]);
  }
  add_wait(waits, "loop", loop);
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

}  // namespace

StepRecorder::StepRecorder(const TrainerOptions& options, const Executor& executor,
                           const PlannedRun& run, std::int64_t total_steps)
    : executor_(executor),
      plan_(run.plan),
      schedule_(*run.plan.schedule("train")),
      origin_ns_(options.trace == nullptr ? now_ns() : options.trace->origin_ns()),
      trace_(options, run, total_steps),
      busy_(schedule_) {
  kinds_.push_back({&schedule_, moved_bytes(plan_, schedule_)});
  if (const Schedule* saves = plan_.schedule("train_save"))
    kinds_.push_back({saves, moved_bytes(plan_, *saves)});
  if (options.predicted) predicted_ = prediction_of(schedule_, *options.predicted);
}

const StepRecorder::Kind& StepRecorder::kind_of(std::string_view schedule) const {
  return *std::ranges::find(kinds_, schedule, [](const Kind& kind) { return kind.schedule->name; });
}

void StepRecorder::took(std::int64_t index, double step_seconds, std::string_view schedule) {
  if (next_ < 0) next_ = first_ = index;
  walls_[slot(index)] = {step_seconds, seconds(now_ns() - origin_ns_), &kind_of(schedule)};
}

void StepRecorder::collect() {
  while (next_ >= 0 && walls_[slot(next_)].kind != nullptr) {
    Wall& wall = walls_[slot(next_)];
    auto step = executor_.completed_step(wall.kind->schedule->name, next_, origin_ns_);
    if (!step) return;
    note(wall, std::move(*step));
    wall.kind = nullptr;  // Looked at.
    ++next_;
  }
}

// What carries a checkpoint is no step like others.
void StepRecorder::note(const Wall& wall, CompletedStep step) {
  const Schedule& schedule = *wall.kind->schedule;
  if (kind_ != wall.kind) before_.clear();
  kind_ = wall.kind;
  timing_ = step.timing;
  use_.seconds = wall.seconds;
  busy_.add(schedule, step.ops);
  use_.busy = busy_.within(wall.end - wall.seconds, wall.end);
  use_.transfer = transfer_seconds(plan_, schedule, step.ops);
  note_waits(step);
  const bool is_warm = timing_.index >= first_ + warm_up_steps;
  if (is_warm && &schedule == &schedule_) history_.add(use_);
  trace_.step(schedule, step);
  before_ = std::move(step.ops);
}

void StepRecorder::note_waits(const CompletedStep& step) {
  const StepGap gap = before_.empty() ? StepGap{} : step_gap(*kind_->schedule, before_, step.ops);
  for (std::size_t lane = 0; lane < num_lanes; ++lane)
    waits_[lane] = seconds(step.timing.compute_wait_ns[lane]) + gap.lanes[lane];
  use_.waits = waits_by_resource(waits_);
  use_.loop = gap.loop;
}

void StepRecorder::describe(StepReport& report) const {
  report.waits = named_waits(waits_, use_.loop, report.seconds);
  report.busy = busy_of(timing_);
  report.timing_step = timing_.index + 1;
  report.nvme_bytes_read = timing_.nvme_bytes_read;
  report.nvme_bytes_written = timing_.nvme_bytes_written;
  report.comm_bytes = timing_.comm_bytes;
  if (timing_.index < 0 || use_.seconds <= 0) return;
  report.used = by_resource([&](std::size_t i) { return use_.busy[i] / use_.seconds; });
  report.rates = by_resource([&](std::size_t i) {
    return use_.transfer[i] > 0 ? static_cast<double>(kind_->bytes[i]) / use_.transfer[i] : 0;
  });
  if (!predicted_) return;
  report.roofline =
      by_resource([&](std::size_t i) { return predicted_->full_rate[i] / use_.seconds; });
  report.of_bound = predicted_->bound_seconds() / use_.seconds;
}

Roofline StepRecorder::roofline() const {
  return {history_.num_steps(), history_.median(), kinds_.front().bytes, predicted_};
}

}  // namespace strata
