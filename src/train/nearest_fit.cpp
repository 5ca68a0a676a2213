// The nearest scenario that fits: found by outlooks, proved by a plan.

#include <utility>

#include "train/fit_ladder.hpp"

namespace strata {
namespace {

constexpr int most_attempts = 6;

}  // namespace

std::optional<Scenario> nearest_fit(const Scenario& scenario, const TierLimits& limits) {
  FitJudge judge(limits);
  if (judge.proves(scenario)) return scenario;
  std::optional<Scenario> nearest;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    auto found = repaired(scenario, limits, judge, [](const Scenario&) { return true; });
    // Once one is found, another attempt with what its plan taught may find a nearer.
    const bool fits = found && judge.proves(found->scenario);
    if (!fits && nearest) return nearest;
    if (fits && std::exchange(nearest, found->scenario)) return nearest;
    if (!found) return std::nullopt;
  }
  return nearest;
}

Fit nearest_miss(const Scenario& scenario, const TierLimits& limits) {
  FitJudge judge(limits);
  judge.prove(scenario);
  return judge.prove(end_of_ladder(scenario, limits, judge));
}

}  // namespace strata
