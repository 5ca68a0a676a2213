#pragma once
// The second half of the checker: every two ops that touch the same bytes, one of them writing, are
// ordered by edges and in-order lanes alone; and so are steps that a barrier parts.

#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

void verify_order(const Schedule& schedule, std::vector<Violation>& found);

}  // namespace strata
