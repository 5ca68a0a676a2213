#pragma once
// A tier's memory over one step: classes stacked, with what is reserved and the limit.

#include <string>

#include "plan/picture_page.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

// Draws from `y` on and moves it below.
std::string draw_memory(const PicturePage& page, const Program& program, const Plan& plan,
                        const Schedule& schedule, const Simulation& simulation, Tier tier,
                        double& y);

}  // namespace strata
