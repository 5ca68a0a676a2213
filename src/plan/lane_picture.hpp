#pragma once
// What each lane does over one step: a row per lane, as high as the lane is busy, coloured by what
// it moves or computes.

#include <string>

#include "plan/picture_page.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

// Draws from `y` on and moves it below.
std::string draw_lanes(const PicturePage& page, const Program& program, const Schedule& schedule,
                       const Simulation& simulation, double& y);

}  // namespace strata
