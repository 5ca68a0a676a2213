#include "strata/plan/fraction_grid.hpp"

#include <algorithm>
#include <cmath>

namespace strata {
namespace {

constexpr long steps = 10'000;
constexpr long dust = 10;  // steps

long whole_steps(double fraction) {
  return std::clamp(std::lround(fraction * static_cast<double>(steps)), 0L, steps);
}

// The double that the decimal text means.
double fraction_of(long count) { return static_cast<double>(count) / static_cast<double>(steps); }

}  // namespace

double& fraction_on(TierFractions& fractions, Tier tier) {
  switch (tier) {
    case Tier::device:
      return fractions.device;
    case Tier::host:
      return fractions.host;
    case Tier::nvme:
      break;
  }
  return fractions.nvme;
}

double on_grid(double fraction) { return fraction_of(whole_steps(fraction)); }

TierFractions on_grid(const TierFractions& fractions) {
  const long device = whole_steps(fractions.device);
  const long nvme = std::min(whole_steps(fractions.nvme), steps - device);
  return {fraction_of(device), fraction_of(steps - device - nvme), fraction_of(nvme)};
}

double move_fraction(TierFractions& fractions, Tier from, Tier to, double share) {
  TierFractions moved = on_grid(fractions);
  const long there = whole_steps(fraction_on(moved, from));
  long taken = std::min(there, whole_steps(share));
  if (taken == 0) return 0;
  if (there - taken < dust) taken = there;
  fraction_on(moved, from) = fraction_of(there - taken);
  fraction_on(moved, to) = fraction_of(whole_steps(fraction_on(moved, to)) + taken);
  fractions = moved;
  return fraction_of(taken);
}

}  // namespace strata
