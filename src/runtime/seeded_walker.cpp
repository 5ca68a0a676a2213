#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/inline_walker.hpp"
#include "strata/core/error.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

// How many ops of the comm lane must run before the report, by edges and the order of lanes.
std::size_t collectives_before(const Schedule& schedule, OpId report) {
  std::vector<OpId> before_in_lane(schedule.ops.size()), open{report};
  for (const auto& lane : schedule.lanes)
    for (std::size_t i = 1; i < lane.size(); ++i) before_in_lane[lane[i].index()] = lane[i - 1];
  std::vector<char> needed(schedule.ops.size(), 0);
  while (!open.empty()) {
    const OpId op = open.back();
    open.pop_back();
    if (!op.valid() || needed[op.index()]++ > 0) continue;
    open.push_back(before_in_lane[op.index()]);
    for (const Edge& edge : schedule.ops[op.index()].after)
      if (edge.steps_back == 0) open.push_back(edge.op);
  }
  const auto& comm = schedule.lanes[static_cast<std::size_t>(Lane::comm)];
  return static_cast<std::size_t>(
      std::ranges::count_if(comm, [&](OpId op) { return needed[op.index()] > 0; }));
}

// Picks any op that its lane and edges allow, by a seeded generator. On NVMe lanes an op is issued
// first and carried out at any later moment, as a drive would.
//
// A collective holds the caller's thread until the other ranks have come to it. So while the caller
// waits for something, only the collectives that this needs may be picked: those that every rank
// that waits for the same comes to, whatever its seed.
class SeededWalker final : public InlineWalker {
 public:
  SeededWalker(const Plan& plan, OpRunner& runner, std::uint64_t seed)
      : InlineWalker(runner), plan_(plan), random_(seed, 0) {
    for (const Schedule& schedule : plan.schedules) {
      completed_.emplace_back(schedule.ops.size(), 0);
      report_ops_.push_back(report_op(schedule));
      reporting_collectives_.push_back(collectives_before(schedule, report_ops_.back()));
    }
  }

  void submit(StepState& step) override {
    rethrow_failure();
    for (std::size_t lane = 0; lane < num_lanes; ++lane) queues_[lane].push_back({&step, 0});
  }
  void wait_reported(const StepState& step) override {
    awaited_ = {&step, reporting_collectives_[step.schedule]};
    while (!reported(step)) advance();
  }
  void wait_complete(const StepState& step) override {
    awaited_ = {&step, plan_.schedules[step.schedule].ops.size()};
    while (step.ops_left > 0) advance();
  }

 private:
  struct Walk {
    StepState* step;
    std::size_t next;  // position in the lane
  };
  // What the caller waits for: a step, with so many of its collectives.
  struct Awaited {
    const StepState* step = nullptr;
    std::size_t collectives = 0;
  };
  struct Candidate {
    StepState* step;
    const Op* op;
    bool in_flight;
    std::size_t at;  // lane, or index in in_flight_
  };

  bool reported(const StepState& step) const {
    const OpId report = report_ops_[step.schedule];
    return completed_[step.schedule][report.index()] > step.run_index;
  }

  void advance() {
    rethrow_failure();
    candidates_.clear();
    for (std::size_t lane = 0; lane < num_lanes; ++lane) consider(lane);
    for (std::size_t i = 0; i < in_flight_.size(); ++i)
      candidates_.push_back({in_flight_[i].step, in_flight_[i].op, true, i});
    ensure(!candidates_.empty());  // A verified plan always has a next op.
    take(candidates_[random_.next_below(candidates_.size())]);
  }

  void consider(std::size_t lane) {
    auto& queue = queues_[lane];
    while (!queue.empty() && queue.front().next == lane_ops(queue.front(), lane).size())
      queue.pop_front();
    if (queue.empty()) return;
    const Walk& walk = queue.front();
    if (lane == static_cast<std::size_t>(Lane::comm) && !is_awaited(walk)) return;
    const Op& op =
        plan_.schedules[walk.step->schedule].ops[lane_ops(walk, lane)[walk.next].index()];
    if (edges_met(op, *walk.step)) candidates_.push_back({walk.step, &op, false, lane});
  }

  // Steps in flight are of one schedule.
  bool is_awaited(const Walk& walk) const {
    const std::uint64_t last = awaited_.step->run_index;
    return walk.step->run_index == last ? walk.next < awaited_.collectives
                                        : walk.step->run_index < last;
  }

  const std::vector<OpId>& lane_ops(const Walk& walk, std::size_t lane) const {
    return plan_.schedules[walk.step->schedule].lanes[lane];
  }

  bool edges_met(const Op& op, const StepState& step) const {
    for (const Edge& edge : op.after)
      if (completed_[step.schedule][edge.op.index()] + static_cast<std::uint64_t>(edge.steps_back) <
          step.run_index + 1)
        return false;
    return true;
  }

  void take(const Candidate& c) {
    if (c.in_flight) {
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(c.at));
      return carry_out(c);
    }
    ++queues_[c.at].front().next;
    if (completes_in_order(c.op->lane)) return carry_out(c);
    in_flight_.push_back(c);
  }

  void carry_out(const Candidate& c) {
    run(*c.op, *c.step);
    ++completed_[c.step->schedule][c.op->id.index()];
  }

  const Plan& plan_;
  PhiloxStream random_;
  std::array<std::deque<Walk>, num_lanes> queues_;
  std::vector<Candidate> in_flight_, candidates_;
  std::vector<std::vector<std::uint64_t>> completed_;  // [schedule][op], steps
  std::vector<OpId> report_ops_;                       // [schedule]
  std::vector<std::size_t> reporting_collectives_;     // [schedule]
  Awaited awaited_;
};

}  // namespace

std::unique_ptr<LaneWalker> make_seeded_walker(const Plan& plan, OpRunner& runner,
                                               std::uint64_t seed) {
  return std::make_unique<SeededWalker>(plan, runner, seed);
}

}  // namespace strata
