// The nearest scenario that fits: found by outlooks, proved by a plan.

#include <utility>

#include "train/fit_ladder.hpp"

namespace strata {
namespace {

constexpr int most_attempts = 6;

// Nothing when none on the ladder fits.
std::optional<NearestFit> climbed(const Scenario& scenario, const TierLimits& limits,
                                  FitJudge& judge) {
  std::optional<NearestFit> nearest;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const auto found = repaired(scenario, limits, judge, [](const Scenario&) { return true; });
    // Once one is found, another attempt with what its plan taught may find a nearer.
    const Fit fit = found ? judge.prove(found->scenario) : Fit{};
    const bool fits = found && fit.fits();
    if (!fits && nearest) return nearest;
    if (fits && std::exchange(nearest, NearestFit{found->scenario, fit})) return nearest;
    if (!found) return std::nullopt;
  }
  return nearest;
}

}  // namespace

NearestFit nearest_fit(const Scenario& scenario, const TierLimits& limits) {
  FitJudge judge(limits);
  const Fit asked = judge.prove(scenario);
  if (asked.fits()) return {scenario, asked};
  if (auto nearest = climbed(scenario, limits, judge)) return *std::move(nearest);
  // Attempts that did not fit made the judge stricter than this plan does.
  judge.learn(scenario, asked);
  return {std::nullopt, judge.prove(end_of_ladder(scenario, limits, judge))};
}

}  // namespace strata
