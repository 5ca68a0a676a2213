#pragma once
// What the checker demands of an op by itself: as many operands as its kind has, each accessed as
// the kind does, of the size of what it is said to hold, and on a lane that can reach them. The
// replays take that for granted.

#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

void verify_form(const Program& program, const Plan& plan, const Schedule& schedule,
                 std::vector<Violation>& found);

}  // namespace strata
