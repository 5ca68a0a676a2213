#pragma once
// Which op is the first to use what a transfer brought. Pure.

#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

struct FirstUse {
  OpId fetch, use;
};

// By regions and the order of emission: a transfer's target, until something else is written
// there. Uses by a later step are not followed, nor are write-backs, which nothing of the step
// uses. In the order of the uses.
std::vector<FirstUse> first_uses(const Schedule& schedule);

}  // namespace strata
