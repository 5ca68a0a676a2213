#include "plan/placement_search.hpp"

#include <algorithm>
#include <limits>

namespace strata {

Judged PlacementSearch::judge(const Policy& policy) const {
  Judged judged{policy, estimator_.estimate(policy), 0, caution_};
  for (std::size_t tier = 0; tier < num_tiers; ++tier)
    judged.overflow += std::max(0.0, judged.estimate.tier_bytes[tier] - capacity_[tier]);
  return judged;
}

Judged PlacementSearch::fitted(const Policy& start) const {
  Judged at = judge(start);
  while (at.overflow > 0 && relieve(at)) {
  }
  return at;
}

Judged PlacementSearch::best_from(const Policy& start, double finest) const {
  Judged at = fitted(start);
  for (double amount : moves_.amounts())
    while ((amount >= finest || amount == moves_.amounts().front()) && improve(at, amount)) {
    }
  return at;
}

// The move that costs the fewest seconds per byte of overflow it takes away.
bool PlacementSearch::relieve(Judged& at) const {
  double cheapest = std::numeric_limits<double>::infinity();
  Judged best = at;
  for (const Shift& shift : moves_.shifts())
    for (double amount : moves_.amounts()) {
      const Judged moved = judge(moves_.shifted(at.policy, shift, amount));
      const double relief = at.overflow - moved.overflow;
      if (relief <= 0) continue;
      const double price = (moved.score() - at.score()) / relief;
      // Larger moves come first: a smaller one has to be clearly cheaper.
      const double margin = 0.02 * std::abs(price);
      if (price + margin < cheapest) cheapest = price, best = moved;
    }
  const bool relieved = best.overflow < at.overflow;
  at = best;
  return relieved;
}

bool PlacementSearch::improve(Judged& at, double amount) const {
  Judged best = at;
  for (const Policy& policy : moves_.neighbours(at.policy, amount)) {
    const Judged moved = judge(policy);
    if (moved.better_than(best)) best = moved;
  }
  const bool improved = best.overflow < at.overflow || best.score() < at.score() * (1 - 1e-6);
  if (improved) at = best;
  return improved;
}

}  // namespace strata
