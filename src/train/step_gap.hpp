#pragma once
// What the compute lane waited for between two steps: a step begins when the result of the one
// before it is there, and the results come late where gradients still have to be summed. Pure.

#include <array>
#include <span>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

struct StepGap {
  std::array<double, num_lanes> lanes{};  // seconds, by the lane that was late
  double loop = 0;                        // from the result to the next step's first op
};

// `before` and `next` are the times of steps that followed one another, by OpId on one clock.
// Followed back from the report: each op is late because of what ended last of its edges and of
// what stands before it on its lane.
StepGap step_gap(const Schedule& schedule, std::span<const OpTime> before,
                 std::span<const OpTime> next);

}  // namespace strata
