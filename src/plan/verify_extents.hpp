#pragma once
// What the checker demands of a Plan's memory, whatever runs: tiers within their limits, a home for
// each tile, and nothing in the way of anything else.

#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

// Where this finds something, the Plan's homes may not be looked up.
void verify_extents(const Program& program, const Plan& plan, std::vector<Violation>& found);

}  // namespace strata
