#pragma once
// A schedule's lanes under way, in simulated time: what ThreadedWalker does with threads. Each lane
// takes its ops in order, one step's after the other's. It waits for the edges of the next op one
// after the other, then starts it. NVMe lanes start whatever is next once its edges are met; their
// drives serve it in order.
//
// A step may begin when the one two before it is complete, and, where the step's result decides the
// next (a norm), when the one before it has reported: as the trainer does.

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "plan/fluid.hpp"
#include "plan/op_demand.hpp"
#include "strata/plan/late_lane.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

// What is kept of one step.
struct StepTrack {
  double begin = 0;     // its first op could start
  double reported = 0;  // its result was there; complete, where the schedule reports none
  std::vector<double> start, end;  // by OpId
  std::size_t ops_left = 0;
  std::array<double, num_lanes> busy{}, compute_waits{};
};

class LaneRun {
 public:
  LaneRun(const Schedule& schedule, const std::vector<OpDemand>& demands,
          const std::vector<Draws>& draws, const std::vector<SharedRate>& rates);

  // No step begins after so many.
  void end_after(std::int64_t steps) { last_ = steps; }
  // Runs until `step` is complete; steps are asked for one after the other. It stays valid until
  // the next is.
  const StepTrack& complete(std::int64_t step);

 private:
  enum class Gate : std::uint8_t { none, edge, step };
  struct LaneState {
    std::int64_t step = 0;
    std::size_t position = 0;  // in the lane's order
    std::size_t edge = 0;      // of the op at `position`, the first not met yet
    Gate waits_for = Gate::none;
    OpId awaited;
    std::int64_t awaited_steps = 0;
    double since = 0;    // when the wait began
    double longest = 0;  // of the waits of the op at `position`, and whose fault it was
    Lane blame{};
    LateLane<double> late;
    int in_flight = 0;  // ops started and not ended
    double busy_since = 0;
  };

  StepTrack& track(std::int64_t step) { return tracks_[static_cast<std::size_t>(step % 3)]; }
  const std::vector<OpId>& order(std::size_t lane) const { return schedule_.lanes[lane]; }
  const Op& op(OpId id) const { return schedule_.ops[id.index()]; }

  void submit();
  bool may_submit() const;
  void work();
  void advance(std::size_t lane);
  bool step_open(std::size_t lane);
  bool edges_met(std::size_t lane, const Op& op);
  void start(std::size_t lane, const Op& op);
  void serve(OpId id);
  void end(OpId id);
  void serve_next(OpId ended);
  void wake(OpId ended);
  void wake_for_step();
  void waited_for_op(std::size_t lane);
  void waited_for_step();
  void change_in_flight(std::size_t lane, std::int64_t step, int change);
  std::deque<OpId>& queue(const Op& op);
  [[noreturn]] void refuse_deadlock() const;

  const Schedule& schedule_;
  const std::vector<OpDemand>& demands_;
  const std::vector<Draws>& draws_;
  Fluid fluid_;
  double now_ = 0;
  std::array<LaneState, num_lanes> lanes_{};
  std::vector<std::int64_t> completed_;         // steps, by OpId
  std::vector<Lane> blame_;                     // by OpId: the lane that kept it waiting last
  std::vector<double> started_;                 // by OpId, last time
  std::vector<OpId> released_by_;               // by OpId: what ended when it started
  std::vector<std::deque<OpId>> drive_queues_;  // by NVMe lane and drive; the first is served
  std::vector<OpId> ended_;
  std::size_t num_drives_ = 0;

  OpId report_, last_ended_;
  bool result_decides_next_ = false;
  std::int64_t submitted_ = 0, reported_ = 0, complete_ = 0;  // steps
  std::int64_t last_ = std::numeric_limits<std::int64_t>::max();
  std::array<StepTrack, 3> tracks_;  // two steps in flight, and the last that is complete
};

}  // namespace strata
