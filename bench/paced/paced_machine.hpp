#pragma once
// A machine of stated rates that the host device stands in for: its profile, for predictions, and
// how long it takes for an op that neither device, drive nor link slows down.

#include "strata/plan/machine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/program/program.hpp"

namespace strata::bench {

struct PacedRates {
  // Of each rank.
  double up = 0, down = 0;        // bytes/s
  double compute = 0;             // flop/s
  double update = 0;              // parameters/s
  double gather = 0, reduce = 0;  // bytes/s
  // Of the drive, which all ranks share.
  double read = 0, write = 0;  // bytes/s
};

MachineProfile profile_of(const PacedRates& rates, int ranks);

// 0: what it takes is for others to say.
double stated_seconds(const Program& program, const Op& op, const PacedRates& rates);

}  // namespace strata::bench
