#pragma once
// Whom to blame when an op is late. An op that had to wait passes the blame on to what it waited
// for; so do the ops queued behind it on an in-order lane, until the lane has worked for as long as
// that wait was: by then they would have been late all the same. The executor and the simulator
// tell waits by this one rule.
//
// One per lane; used by the lane's thread.

#include <algorithm>

#include "strata/plan/plan.hpp"

namespace strata {

template <typename Time>
class LateLane {
 public:
  // An op of `lane` begins after its longest wait, of `waited` (0: none worth a word), for `cause`.
  // Returns the lane that kept it waiting, or its own.
  Lane begin(Lane lane, Time waited, Lane cause) {
    if (!completes_in_order(lane)) return waited > Time{} ? cause : lane;
    if (waited > Time{}) left_ = waited, cause_ = cause;
    return left_ > Time{} ? cause_ : lane;
  }
  void worked(Time time) { left_ -= std::min(left_, time); }

 private:
  Time left_{};  // of the last wait, not yet made up for by work
  Lane cause_ = Lane::compute;
};

}  // namespace strata
