#pragma once
// What the ops of a plan share on a machine beyond their lanes, as rates that they draw on: host
// memory, the link and each drive, these in each direction and in both.

#include <vector>

#include "plan/fluid.hpp"
#include "plan/op_demand.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

class SharedRates {
 public:
  explicit SharedRates(const MachineProfile& machine);

  const std::vector<SharedRate>& rates() const { return rates_; }
  std::vector<Draws> draws(const std::vector<OpDemand>& demands) const;
  // What the busiest of the rates needs for all ops.
  double least_seconds(const std::vector<OpDemand>& demands, const std::vector<Draws>& draws) const;

 private:
  struct Directions {
    int one = 0, other = 0, both = 0;
  };
  struct Drive {
    Directions rates;
    double both_share = 1;  // of what both directions can do together, by one at its full rate
  };

  int add(const SharedRate& rate, double most);
  Directions add_directions(double share_of_one);
  Draws draws(const OpDemand& demand) const;
  void add_drive(Draws& draws, const OpDemand& demand, bool reads) const;

  std::vector<SharedRate> rates_;
  std::vector<double> most_;  // by rate: what can be drawn on it at any moment
  Directions link_;
  int host_memory_ = 0;
  double both_up_ = 0, both_down_ = 0;
  std::vector<Drive> drives_;
};

}  // namespace strata
