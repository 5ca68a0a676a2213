#include "strata/runtime/executor.hpp"

#include <algorithm>
#include <array>

#include "runtime/lane_walker.hpp"
#include "runtime/op_runner.hpp"
#include "runtime/step_state.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t steps_in_flight_max = 2;

std::unique_ptr<LaneWalker> make_walker(const Plan& plan, OpRunner& runner,
                                        const ExecutorOptions& options) {
  switch (options.mode) {
    case ExecutionMode::serial:
      return make_serial_walker(plan, runner);
    case ExecutionMode::seeded:
      return make_seeded_walker(plan, runner, options.seed);
    case ExecutionMode::threaded:
      break;
  }
  return make_threaded_walker(plan, runner, options);
}

}  // namespace

class Executor::Impl {
 public:
  Impl(const Program& program, const Plan& plan, const ExecutorParts& parts,
       const ExecutorOptions& options)
      : plan_(plan),
        runner_(program, plan, parts, options),
        runs_(plan.schedules.size(), 0),
        timings_(plan.schedules.size()),
        walker_(make_walker(plan, runner_, options)) {
    std::size_t ops_max = 0;
    for (const Schedule& schedule : plan.schedules)
      ops_max = std::max(ops_max, schedule.ops.size());
    for (StepState& state : states_) {
      state.result.micro_batch_losses.reserve(program.shards.size() *
                                              static_cast<std::size_t>(program.world));
      state.spans.resize(ops_max);
    }
  }
  // Other ranks would wait for this one, and its lanes for them.
  ~Impl() {
    if (!all_complete()) runner_.abort_ranks("the rank ended before its steps were done");
  }

  void submit(std::string_view name, const StepArgs& args) {
    const std::size_t schedule = index_of(name);
    if (submitted_ > 0 && schedule != last_schedule_) drain();
    ensure(submitted_ - reported_ <
           steps_in_flight_max);  // The caller takes each result before the third step.
    if (submitted_ >= steps_in_flight_max) complete(submitted_ - steps_in_flight_max);
    StepState& state = state_of(submitted_);
    state.begin(args, schedule, runs_[schedule]++, plan_.schedules[schedule].ops.size());
    last_schedule_ = schedule;
    ++submitted_;
    walker_->submit(state);
  }

  const StepResult& wait_result() {
    ensure(reported_ < submitted_);
    const StepState& state = state_of(reported_);
    walker_->wait_reported(state);
    ++reported_;
    return state.result;
  }

  void drain() {
    for (std::uint64_t step = completed_; step < submitted_; ++step) complete(step);
  }

  StepTiming last_timing(std::string_view schedule) const { return timings_[index_of(schedule)]; }

  std::optional<CompletedStep> completed_step(std::string_view name, std::int64_t index,
                                              std::int64_t origin_ns) const {
    const std::size_t schedule = index_of(name);
    for (std::uint64_t step = kept_from(); step < completed_; ++step) {
      const StepState& state = states_[step % states_.size()];
      if (state.schedule == schedule && state.index == index)
        return CompletedStep{state.timing(), op_times(state, origin_ns)};
    }
    return {};
  }

 private:
  StepState& state_of(std::uint64_t step) { return states_[step % states_.size()]; }
  std::uint64_t kept_from() const {
    return submitted_ - std::min<std::uint64_t>(submitted_, states_.size());
  }

  std::vector<OpTime> op_times(const StepState& state, std::int64_t origin_ns) const {
    std::vector<OpTime> times;
    times.reserve(plan_.schedules[state.schedule].ops.size());
    for (const Op& op : plan_.schedules[state.schedule].ops) {
      const OpSpan& span = state.spans[op.id.index()];
      times.push_back(
          {op.id, seconds(span.start_ns - origin_ns), seconds(span.end_ns - origin_ns)});
    }
    return times;
  }

  bool all_complete() const {
    for (std::uint64_t step = completed_; step < submitted_; ++step)
      if (states_[step % states_.size()].ops_left > 0) return false;
    return true;
  }

  void complete(std::uint64_t step) {
    if (step < completed_) return;
    walker_->wait_complete(state_of(step));
    timings_[state_of(step).schedule] = state_of(step).timing();
    completed_ = step + 1;
  }

  std::size_t index_of(std::string_view name) const {
    const auto found = std::ranges::find(plan_.schedules, name, &Schedule::name);
    ensure(found != plan_.schedules.end());
    return static_cast<std::size_t>(found - plan_.schedules.begin());
  }

  const Plan& plan_;
  OpRunner runner_;
  std::array<StepState, 4> states_;  // results stay readable while two later steps run
  std::vector<std::uint64_t> runs_;  // per schedule
  std::uint64_t submitted_ = 0, reported_ = 0, completed_ = 0;
  std::size_t last_schedule_ = 0;
  std::vector<StepTiming> timings_;     // per schedule, of the last complete step
  std::unique_ptr<LaneWalker> walker_;  // last: its threads use the rest
};

Executor::Executor(const Program& program, const Plan& plan, const ExecutorParts& parts,
                   const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(program, plan, parts, options)) {}
Executor::~Executor() = default;

void Executor::submit(std::string_view schedule, const StepArgs& args) {
  impl_->submit(schedule, args);
}
const StepResult& Executor::wait_result() { return impl_->wait_result(); }
void Executor::drain() { impl_->drain(); }
StepTiming Executor::last_timing(std::string_view schedule) const {
  return impl_->last_timing(schedule);
}
std::optional<CompletedStep> Executor::completed_step(std::string_view schedule, std::int64_t index,
                                                      std::int64_t origin_ns) const {
  return impl_->completed_step(schedule, index, origin_ns);
}

}  // namespace strata
