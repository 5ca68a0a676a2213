#pragma once
// The best placement of one variant by its estimate: greedy until it fits, by the seconds that each
// byte costs, then uphill no more.

#include "estimate.hpp"
#include "placement_moves.hpp"
#include "strata/plan/fit.hpp"

namespace strata {

// A policy as it was judged.
struct Judged {
  Policy policy;
  Estimate estimate;
  double overflow = 0;  // bytes beyond the capacity of all tiers
  double caution = 0;   // what was asked of the search

  // Resources that a bound holds to be hidden are never quite: the more so the busier they are.
  double score() const { return estimate.seconds + caution * estimate.traffic; }
  bool better_than(const Judged& other) const {
    if (overflow != other.overflow) return overflow < other.overflow;
    return score() < other.score();
  }
};

class PlacementSearch {
 public:
  // What it is given must outlive it.
  // `caution`: seconds that a busy second of any resource counts beside the bound.
  PlacementSearch(const Estimator& estimator, const PlacementMoves& moves, const Capacity& capacity,
                  double caution)
      : estimator_(estimator), moves_(moves), capacity_(capacity), caution_(caution) {}

  Judged judge(const Policy& policy) const;
  // The nearest to `start` that fits and cannot be bettered by one move of at least `finest`; its
  // overflow is what remains where nothing fits.
  Judged best_from(const Policy& start, double finest = 0) const;
  Judged fitted(const Policy& start) const;

 private:
  bool relieve(Judged& at) const;
  bool improve(Judged& at, double amount) const;

  const Estimator& estimator_;
  const PlacementMoves& moves_;
  const Capacity& capacity_;
  double caution_;
};

}  // namespace strata
