#pragma once
// Fractions as texts hold them: whole ten-thousandths that sum to 1. What is searched, printed,
// pasted and run is then one placement. Pure; any thread.

#include "strata/plan/plan.hpp"

namespace strata {

double& fraction_on(TierFractions& fractions, Tier tier);

double on_grid(double fraction);
// Of the three, host is what the other two leave.
TierFractions on_grid(const TierFractions& fractions);

// Moves up to `share` of the whole from one tier to another, on the grid, and all of it rather than
// leave less than a thousandth. Returns what it moved.
double move_fraction(TierFractions& fractions, Tier from, Tier to, double share);

}  // namespace strata
