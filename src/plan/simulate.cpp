#include "strata/plan/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/fluid.hpp"
#include "plan/lane_run.hpp"
#include "plan/op_demand.hpp"
#include "plan/shared_rates.hpp"

namespace strata {
namespace {

// Steps before the first that is measured, and when to give up waiting for a steady state.
constexpr std::int64_t warm_up_steps = 2, last_step_max = 11;
constexpr double steady_tolerance = 1e-6;

void add_demands(Simulation& result, const std::vector<OpDemand>& demands) {
  for (const OpDemand& demand : demands) {
    result.flops += demand.flops;
    for (std::size_t i = 0; i < num_resources; ++i) {
      result.busy[i] += demand.busy[i];
      result.bytes[i] += demand.bytes[i];
    }
  }
  const auto most = std::ranges::max_element(result.busy);
  result.bound_by = static_cast<Resource>(most - result.busy.begin());
}

double busiest_lane_seconds(const Schedule& schedule, const std::vector<OpDemand>& demands) {
  std::array<double, num_lanes> seconds{};
  for (const Op& op : schedule.ops)
    if (completes_in_order(op.lane))
      seconds[static_cast<std::size_t>(op.lane)] += demands[op.id.index()].seconds;
  return *std::ranges::max_element(seconds);
}

bool close(double a, double b) { return std::abs(a - b) <= steady_tolerance * std::max(a, b); }

// What is kept of the steps of a run: when each reported, and the last one's totals.
class Measured {
 public:
  void add(const StepTrack& step) {
    const double last = reported_.empty() ? 0 : reported_.back();
    reported_.push_back(step.reported);
    seconds_.push_back(step.reported - last);
    before_ = std::exchange(totals_, {step.busy, step.compute_waits});
  }
  // Each step takes as long as the one before it, or as the one before that.
  bool steady() const {
    const std::size_t n = seconds_.size();
    return close(seconds_[n - 1], seconds_[n - 2]) ||
           (close(seconds_[n - 1], seconds_[n - 3]) && close(seconds_[n - 2], seconds_[n - 4]));
  }
  void tell(Simulation& result) const {
    result.first_step_seconds = seconds_.front();
    result.step_seconds = (reported_.back() - reported_[reported_.size() - 3]) / 2;
    for (std::size_t lane = 0; lane < num_lanes; ++lane) {
      result.lane_busy[lane] = (before_.busy[lane] + totals_.busy[lane]) / 2;
      result.compute_waits[lane] = (before_.waits[lane] + totals_.waits[lane]) / 2;
    }
  }

 private:
  struct Totals {
    std::array<double, num_lanes> busy{}, waits{};
  };
  std::vector<double> reported_, seconds_;  // by step
  Totals before_, totals_;
};

void add_op_times(Simulation& result, const StepTrack& step) {
  for (std::size_t i = 0; i < step.start.size(); ++i)
    result.ops.push_back(
        {OpId{static_cast<std::int32_t>(i)}, step.start[i] - step.begin, step.end[i] - step.begin});
}

}  // namespace

double seconds_alone(const Program& program, const Plan& plan, std::string_view name,
                     const MachineProfile& machine) {
  const std::vector<OpDemand> demands = op_demands(program, plan, name, machine);
  if (demands.empty()) return 0;
  const SharedRates shared(machine);
  const std::vector<Draws> draws = shared.draws(demands);
  LaneRun run(schedule_named(plan, name), demands, draws, shared.rates());
  run.end_after(1);
  const StepTrack& step = run.complete(0);
  return *std::ranges::max_element(step.end) - step.begin;
}

Simulation simulate(const Program& program, const Plan& plan, std::string_view name,
                    const MachineProfile& machine) {
  const Schedule& schedule = schedule_named(plan, name);
  const std::vector<OpDemand> demands = op_demands(program, plan, name, machine);
  Simulation result;
  if (demands.empty()) return result;
  add_demands(result, demands);
  const SharedRates shared(machine);
  const std::vector<Draws> draws = shared.draws(demands);
  result.least_seconds =
      std::max(shared.least_seconds(demands, draws), busiest_lane_seconds(schedule, demands));

  LaneRun run(schedule, demands, draws, shared.rates());
  Measured measured;
  for (std::int64_t step = 0;; ++step) {
    const StepTrack& done = run.complete(step);
    measured.add(done);
    if (step <= warm_up_steps || (step < last_step_max && !measured.steady())) continue;
    measured.tell(result);
    add_op_times(result, done);
    return result;
  }
}

}  // namespace strata
