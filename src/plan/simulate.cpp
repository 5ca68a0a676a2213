#include "strata/plan/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "plan/fluid.hpp"
#include "plan/lane_run.hpp"
#include "plan/op_demand.hpp"
#include "plan/rank_rates.hpp"

namespace strata {
namespace {

// Steps before the first that is measured, and when to give up waiting for a steady state.
constexpr std::int64_t warm_up_steps = 2, last_step_max = 11;
constexpr double steady_tolerance = 1e-6;

// What ops share, beyond their lanes.
class Sharing {
 public:
  explicit Sharing(const MachineProfile& machine) {
    const int up = add({}), down = add({});
    link_ = {up, down, add({{up, down}})};
    host_memory_ = add({});
    const double both = machine.link.both_bytes_per_s;
    both_up_ = both > 0 ? machine.link.up_bytes_per_s / both : 0;
    both_down_ = both > 0 ? machine.link.down_bytes_per_s / both : 0;
    for (const DriveProfile& drive : machine.drives) {
      const int read = add({}), write = add({});
      drives_.push_back({{read, write, add({{read, write}})}, 1 / mixed_capacity(drive)});
    }
  }

  const std::vector<SharedRate>& rates() const { return rates_; }

  Draws draws(const OpDemand& demand) const {
    Draws draws;
    if (demand.seconds == 0) return draws;
    const auto share = [&](Resource of) {
      return demand.busy[static_cast<std::size_t>(of)] / demand.seconds;
    };
    add(draws, host_memory_, share(Resource::host_memory));
    add(draws, link_.one, share(Resource::up));
    add(draws, link_.other, share(Resource::down));
    add(draws, link_.both, share(Resource::up) * both_up_ + share(Resource::down) * both_down_);
    if (demand.drive != no_drive) add_drive(draws, demand, share(Resource::nvme_read) > 0);
    return draws;
  }

 private:
  struct Directions {
    int one = 0, other = 0, both = 0;
  };
  struct Drive {
    Directions rates;
    double both_share = 1;
  };

  int add(const SharedRate& rate) {
    rates_.push_back(rate);
    return static_cast<int>(rates_.size()) - 1;
  }
  static void add(Draws& draws, int rate, double share) {
    if (share > 0) draws.add(rate, share);
  }
  void add_drive(Draws& draws, const OpDemand& demand, bool reads) const {
    const Drive& drive = drives_[static_cast<std::size_t>(demand.drive)];
    const double share = demand.drive_seconds / demand.seconds;
    add(draws, reads ? drive.rates.one : drive.rates.other, share);
    add(draws, drive.rates.both, share * drive.both_share);
  }

  std::vector<SharedRate> rates_;
  Directions link_;
  int host_memory_ = 0;
  double both_up_ = 0, both_down_ = 0;
  std::vector<Drive> drives_;
};

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

Simulation simulate(const Program& program, const Plan& plan, std::string_view schedule,
                    const MachineProfile& machine) {
  const std::vector<OpDemand> demands = op_demands(program, plan, schedule, machine);
  Simulation result;
  if (demands.empty()) return result;
  add_demands(result, demands);
  const Sharing sharing(machine);
  std::vector<Draws> draws;
  for (const OpDemand& demand : demands) draws.push_back(sharing.draws(demand));

  LaneRun run(schedule_named(plan, schedule), demands, draws, sharing.rates());
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
