#include "plan/lane_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {
namespace {

// As in ThreadedWalker: a shorter wait is not what made an op late.
constexpr double wait_noticed_seconds = 20e-6;
constexpr auto compute_lane = static_cast<std::size_t>(Lane::compute);

std::size_t index(Lane lane) { return static_cast<std::size_t>(lane); }

}  // namespace

LaneRun::LaneRun(const Schedule& schedule, const std::vector<OpDemand>& demands,
                 const std::vector<Draws>& draws, const std::vector<SharedRate>& rates)
    : schedule_(schedule),
      demands_(demands),
      draws_(draws),
      fluid_(rates),
      completed_(schedule.ops.size(), 0),
      blame_(schedule.ops.size(), Lane::compute),
      started_(schedule.ops.size(), 0),
      released_by_(schedule.ops.size()) {
  for (const OpDemand& demand : demands)
    num_drives_ = std::max(num_drives_, static_cast<std::size_t>(demand.drive + 1));
  drive_queues_.resize(num_lanes * num_drives_);
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::report) report_ = op.id;
    result_decides_next_ |= op.kind == OpKind::norm;
  }
  result_decides_next_ &= report_.valid();
}

const StepTrack& LaneRun::complete(std::int64_t step) {
  while (complete_ <= step) {
    while (may_submit()) submit();
    work();
    if (complete_ > step) break;
    if (fluid_.empty()) refuse_deadlock();
    now_ = fluid_.next_end(now_);
    fluid_.take_ended(now_, ended_);
  }
  return track(step);
}

bool LaneRun::may_submit() const {
  return submitted_ < last_ && submitted_ < complete_ + 2 &&
         (!result_decides_next_ || reported_ == submitted_);
}

void LaneRun::submit() {
  StepTrack& begun = track(submitted_);
  begun = {};
  begun.begin = now_;
  begun.start.resize(schedule_.ops.size());
  begun.end.resize(schedule_.ops.size());
  begun.ops_left = schedule_.ops.size();
  ++submitted_;
  wake_for_step();
}

// Ends what has ended, and starts what that allows; ops that take no time end at once.
void LaneRun::work() {
  for (std::size_t i = 0; i < ended_.size(); ++i) end(ended_[i]);
  ended_.clear();
}

void LaneRun::advance(std::size_t lane) {
  LaneState& state = lanes_[lane];
  if (order(lane).empty()) return;
  state.waits_for = Gate::none;
  while (state.in_flight == 0 || !completes_in_order(static_cast<Lane>(lane))) {
    if (state.position == order(lane).size()) ++state.step, state.position = 0;
    if (!step_open(lane)) return;
    const Op& next = op(order(lane)[state.position]);
    if (!edges_met(lane, next)) return;
    start(lane, next);
  }
}

bool LaneRun::step_open(std::size_t lane) {
  LaneState& state = lanes_[lane];
  if (state.step < submitted_) return true;
  state.waits_for = Gate::step;
  state.since = now_;
  return false;
}

bool LaneRun::edges_met(std::size_t lane, const Op& op) {
  LaneState& state = lanes_[lane];
  for (; state.edge < op.after.size(); ++state.edge) {
    const Edge& edge = op.after[state.edge];
    const std::int64_t steps = state.step + 1 - edge.steps_back;
    if (completed_[edge.op.index()] >= steps) continue;
    state.waits_for = Gate::edge;
    state.awaited = edge.op;
    state.awaited_steps = steps;
    state.since = now_;
    return false;
  }
  return true;
}

void LaneRun::start(std::size_t lane, const Op& op) {
  LaneState& state = lanes_[lane];
  const double waited = state.longest > wait_noticed_seconds ? state.longest : 0;
  blame_[op.id.index()] = state.late.begin(op.lane, waited, state.blame);
  state.longest = 0;
  state.edge = 0;
  ++state.position;
  change_in_flight(lane, state.step, +1);
  if (!is_nvme_lane(op.lane)) return serve(op.id);
  std::deque<OpId>& waiting = queue(op);
  waiting.push_back(op.id);
  if (waiting.size() == 1) serve(op.id);
}

void LaneRun::serve(OpId id) {
  const std::int64_t step = completed_[id.index()];
  track(step).start[id.index()] = started_[id.index()] = now_;
  released_by_[id.index()] = last_ended_;
  const double seconds = demands_[id.index()].seconds;
  if (seconds > 0)
    fluid_.start(id, seconds, draws_[id.index()], now_);
  else
    ended_.push_back(id);
}

void LaneRun::end(OpId id) {
  const std::int64_t step = completed_[id.index()]++;
  const std::size_t lane = index(op(id).lane);
  StepTrack& of_step = track(step);
  of_step.end[id.index()] = now_;
  last_ended_ = id;
  lanes_[lane].late.worked(now_ - started_[id.index()]);
  change_in_flight(lane, step, -1);
  const bool complete = --of_step.ops_left == 0;
  if (id == report_ || (complete && !report_.valid())) of_step.reported = now_, ++reported_;
  if (complete) ++complete_;
  if (is_nvme_lane(op(id).lane)) serve_next(id);
  while (may_submit()) submit();
  wake(id);
  if (completes_in_order(op(id).lane)) advance(lane);
}

void LaneRun::serve_next(OpId ended) {
  std::deque<OpId>& waiting = queue(op(ended));
  waiting.pop_front();
  if (!waiting.empty()) serve(waiting.front());
}

void LaneRun::wake(OpId ended) {
  for (std::size_t lane = 0; lane < num_lanes; ++lane) {
    LaneState& state = lanes_[lane];
    if (state.waits_for != Gate::edge || state.awaited != ended ||
        completed_[ended.index()] < state.awaited_steps)
      continue;
    waited_for_op(lane);
    advance(lane);
  }
}

void LaneRun::wake_for_step() {
  const bool is_first = !last_ended_.valid();
  if (lanes_[compute_lane].waits_for == Gate::step) waited_for_step();
  for (std::size_t lane = 0; lane < num_lanes; ++lane)
    if (is_first || lanes_[lane].waits_for == Gate::step) advance(lane);
}

// As ThreadedWalker::await_edges() does. A lane that waits is not what it waits for: its own part
// was over before the wait began.
void LaneRun::waited_for_op(std::size_t lane) {
  LaneState& state = lanes_[lane];
  const double time = now_ - state.since;
  const Lane blamed = blame_[state.awaited.index()];
  const Lane late = index(blamed) == lane ? op(state.awaited).lane : blamed;
  if (lane == compute_lane) track(state.step).compute_waits[index(late)] += time;
  if (time > state.longest) state.longest = time, state.blame = late;
}

// Nothing to compute until the step before has its result: the way to it, op by op, is what it
// waited for.
void LaneRun::waited_for_step() {
  const LaneState& state = lanes_[compute_lane];
  auto& waits = track(state.step).compute_waits;
  double until = now_;
  OpId cause = last_ended_;
  for (std::size_t i = 0; i < schedule_.ops.size() && cause.valid(); ++i) {
    const double since = std::max(state.since, started_[cause.index()]);
    if (since > until) break;
    waits[index(op(cause).lane)] += until - since;
    until = since;
    if (until <= state.since) return;
    cause = released_by_[cause.index()];
  }
  waits[index(op(last_ended_).lane)] += until - state.since;
}

void LaneRun::change_in_flight(std::size_t lane, std::int64_t step, int change) {
  LaneState& state = lanes_[lane];
  if (state.in_flight > 0) track(step).busy[lane] += now_ - state.busy_since;
  state.busy_since = now_;
  state.in_flight += change;
}

std::deque<OpId>& LaneRun::queue(const Op& op) {
  const auto drive = static_cast<std::size_t>(demands_[op.id.index()].drive);
  return drive_queues_[index(op.lane) * num_drives_ + drive];
}

void LaneRun::refuse_deadlock() const {
  for (const LaneState& state : lanes_)
    if (state.waits_for == Gate::edge)
      throw ConfigError(
          fmt::format("schedule '{}' cannot go on: everything waits for op {}, which waits itself; "
                      "verify() tells what is wrong with the plan",
                      schedule_.name, state.awaited.value));
  throw ConfigError(fmt::format("schedule '{}' has ops on no lane", schedule_.name));
}

}  // namespace strata
