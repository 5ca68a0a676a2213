#pragma once
// The second half of the checker: every two ops that touch the same bytes, one of them writing, are
// ordered by edges and in-order lanes alone.

#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

void verify_order(const Program& program, const Plan& plan, const Schedule& schedule,
                  std::vector<Violation>& found);

}  // namespace strata
