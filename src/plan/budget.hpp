#pragma once
// Compares a plan's tiers with their limits.

#include "strata/plan/plan.hpp"

namespace strata {

// Throws OutOfMemory naming the tier, the need, the limit and the largest contributors.
void check_budgets(const Plan& plan);

}  // namespace strata
