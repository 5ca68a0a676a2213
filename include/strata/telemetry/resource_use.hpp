#pragma once
// What the ops of a step use of a machine: bytes over its links, and the time in which each
// resource had something to do. The same functions serve measured and predicted times. Thread
// contract: values and pure functions.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

template <typename Value>
using PerResource = std::array<Value, num_resources>;

// The resource that a lane keeps busy; step and state lanes share it.
Resource resource_of_lane(Lane lane);
bool is_link(Resource resource);

// link_bytes() of a step.
PerResource<std::uint64_t> moved_bytes(const Plan& plan, const Schedule& schedule);
// Seconds in which at least one op of the step had such bytes on their way, whenever that was: a
// step's bytes over these seconds are what its links did while in use. Indexed by OpId.
PerResource<double> transfer_seconds(const Plan& plan, const Schedule& schedule,
                                     std::span<const OpTime> times);

// When resources had something to do, told by windows of time. Steps overlap, so a window sees ops
// of several: what a resource does in it is never more than the window is long.
class BusyTime {
 public:
  explicit BusyTime(const Schedule& schedule) : schedule_(schedule) {}
  // One more step; `times` is indexed by OpId, `at_s` is added to all of them.
  void add(std::span<const OpTime> times, double at_s = 0) { add(schedule_, times, at_s); }
  // One of another schedule of the same plan.
  void add(const Schedule& schedule, std::span<const OpTime> times, double at_s = 0);
  // Seconds in which at least one op was under way, of any step. Windows are asked for in order:
  // what had ended by this one's end is forgotten.
  PerResource<double> within(double begin, double end);

  struct Stretch {
    double start, end;
  };

 private:
  const Schedule& schedule_;
  PerResource<std::vector<Stretch>> stretches_;
};

}  // namespace strata
