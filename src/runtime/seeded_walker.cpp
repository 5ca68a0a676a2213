#include <algorithm>
#include <deque>
#include <vector>

#include "runtime/inline_walker.hpp"
#include "runtime/stream_lane.hpp"
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
// first and carried out at any later moment, as a drive would. What streams carry out is issued as
// on threads, and taken for complete at any later moment, in its lane's order.
//
// A collective holds the caller's thread until the other ranks have come to it. So while the caller
// waits for something, only the collectives that this needs may be picked: those that every rank
// that waits for the same comes to, whatever its seed.
class SeededWalker final : public InlineWalker {
 public:
  SeededWalker(const Plan& plan, OpRunner& runner, std::uint64_t seed)
      : InlineWalker(runner),
        plan_(plan),
        random_(seed, 0),
        stream_lanes_(make_stream_lanes(plan, runner)) {
    for (const Schedule& schedule : plan.schedules) {
      completed_.emplace_back(schedule.ops.size(), 0);
      issued_.emplace_back(schedule.ops.size(), 0);
      flights_.emplace_back(schedule.ops.size());
      report_ops_.push_back(report_op(schedule));
      reporting_collectives_.push_back(collectives_before(schedule, report_ops_.back()));
    }
  }

  ~SeededWalker() override { runner_.drain_streams(); }

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
  enum class Move : std::uint8_t { begin, carry_out, complete };
  struct Candidate {
    StepState* step;
    const Op* op;
    Move move;
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
      candidates_.push_back({in_flight_[i].step, in_flight_[i].op, Move::carry_out, i});
    for (std::size_t lane = 0; lane < num_lanes; ++lane) consider_stream(lane);
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
    if (lane_is_ready(op) && edges_met(op, *walk.step))
      candidates_.push_back({walk.step, &op, Move::begin, lane});
  }

  void consider_stream(std::size_t lane) {
    if (stream_lanes_[lane] == nullptr) return;
    if (const auto flight = stream_lanes_[lane]->peek())
      candidates_.push_back({flight->step, flight->op, Move::complete, lane});
  }

  // What runs on the caller's thread does not overtake what its lane has given to the stream.
  bool lane_is_ready(const Op& op) const {
    const StreamLane* const lane = stream_lanes_[static_cast<std::size_t>(op.lane)].get();
    if (lane == nullptr) return true;
    return runner_.is_asynchronous(op) ? !lane->is_full() : !lane->peek();
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
    for (const Edge& edge : op.after) {
      const auto& reached = is_held_on_stream(op, edge, step) ? issued_ : completed_;
      if (reached[step.schedule][edge.op.index()] + static_cast<std::uint64_t>(edge.steps_back) <
          step.run_index + 1)
        return false;
    }
    return true;
  }
  const Op& source(const Edge& edge, const StepState& step) const {
    return plan_.schedules[step.schedule].ops[edge.op.index()];
  }
  bool is_held_on_stream(const Op& op, const Edge& edge, const StepState& step) const {
    return runner_.is_asynchronous(op) && !runner_.looks_at_host(op) &&
           runner_.is_asynchronous(source(edge, step));
  }

  void take(const Candidate& c) {
    if (c.move == Move::complete) return complete_oldest(c);
    if (c.move == Move::carry_out) {
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(c.at));
      return carry_out(c);
    }
    ++queues_[c.at].front().next;
    if (runner_.is_asynchronous(*c.op)) return issue(c);
    if (completes_in_order(c.op->lane)) return carry_out(c);
    in_flight_.push_back({c.step, c.op, Move::carry_out, 0});
  }

  void carry_out(const Candidate& c) {
    run(*c.op, *c.step);
    ++completed_[c.step->schedule][c.op->id.index()];
  }

  void issue(const Candidate& c) {
    StreamLane& lane = *stream_lanes_[c.at];
    guarded(*c.op, *c.step, [&] {
      for (const Edge& edge : c.op->after)
        if (is_held_on_stream(*c.op, edge, *c.step)) hold(*c.op, edge, *c.step);
      lane.begin();
      runner_.issue(*c.op, *c.step);
      flights_of(*c.op, *c.step)[c.step->run_index % 2] = lane.end({c.op, c.step, 0});
    });
    ++issued_[c.step->schedule][c.op->id.index()];
  }
  std::array<std::uint64_t, 2>& flights_of(const Op& op, const StepState& step) {
    return flights_[step.schedule][op.id.index()];
  }
  void hold(const Op& op, const Edge& edge, const StepState& step) {
    const Op& from = source(edge, step);
    const auto steps_back = static_cast<std::uint64_t>(edge.steps_back);
    if (from.lane == op.lane || step.run_index < steps_back) return;
    stream_lanes_[static_cast<std::size_t>(from.lane)]->hold(
        runner_.stream(op), flights_of(from, step)[(step.run_index - steps_back) % 2]);
  }

  void complete_oldest(const Candidate& c) {
    StreamLane& lane = *stream_lanes_[c.at];
    guarded(*c.op, *c.step, [&] {
      c.step->ran(*c.op, lane.await_oldest());
      runner_.confirm(*c.op);
    });
    lane.retire();
    --c.step->ops_left;
    ++completed_[c.step->schedule][c.op->id.index()];
  }

  const Plan& plan_;
  PhiloxStream random_;
  std::array<std::deque<Walk>, num_lanes> queues_;
  std::vector<Candidate> in_flight_, candidates_;
  std::vector<std::unique_ptr<StreamLane>> stream_lanes_;       // by lane; may be null
  std::vector<std::vector<std::uint64_t>> completed_, issued_;  // [schedule][op], steps
  // [schedule][op], its number on its lane in this step and the one before, by parity of run_index
  std::vector<std::vector<std::array<std::uint64_t, 2>>> flights_;
  std::vector<OpId> report_ops_;                    // [schedule]
  std::vector<std::size_t> reporting_collectives_;  // [schedule]
  Awaited awaited_;
};

}  // namespace

std::unique_ptr<LaneWalker> make_seeded_walker(const Plan& plan, OpRunner& runner,
                                               std::uint64_t seed) {
  return std::make_unique<SeededWalker>(plan, runner, seed);
}

}  // namespace strata
