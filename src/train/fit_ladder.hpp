#pragma once
// Makes a scenario smaller until it fits: rungs of a ladder are taken, those of the tier that is
// short, the cheapest first, each no further than it has to be; then what was not needed after all
// is given back.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/fit_judge.hpp"

namespace strata {

// A scenario that fits, and what was done for it: "less optimizer in GPU memory".
struct Repair {
  Scenario scenario;
  std::vector<std::string> steps;
};
// What a repair may come to: a change that it repairs has to stay.
using MayBecome = std::function<bool(const Scenario&)>;

// By the judge's outlooks. Empty when the ladder ends before the scenario fits.
std::optional<Repair> repaired(const Scenario& scenario, const TierLimits& limits, FitJudge& judge,
                               const MayBecome& may_become);
// Where that ladder ends: what fits, or the smallest that there is.
Scenario end_of_ladder(const Scenario& scenario, const TierLimits& limits, FitJudge& judge);

}  // namespace strata
