#pragma once
// One predicted step of a plan as a picture: what lives in each memory tier over the step, and what
// each lane does when. A self-contained SVG document of bounded size. Pure; any thread.

#include <string>
#include <string_view>

#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {

// `simulation` is of the schedule of that name.
std::string draw_plan(const Program& program, const Plan& plan, std::string_view schedule,
                      const Simulation& simulation, const std::string& title);

}  // namespace strata
