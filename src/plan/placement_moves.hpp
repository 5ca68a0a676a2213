#pragma once
// The small changes of a placement that a search tries: bytes of some roles from one tier to
// another, alone or against bytes of others that come back.

#include <vector>

#include "step_outline.hpp"
#include "strata/plan/search.hpp"

namespace strata {

// Roles that move together: the state of an update is of use on the device only as a whole.
using RoleGroup = std::vector<Role>;

struct Shift {
  std::size_t group = 0;
  Tier from = Tier::host, to = Tier::device;
};

class PlacementMoves {
 public:
  PlacementMoves(const StepOutline& outline, const SearchSpace& space, bool has_drives);

  const std::vector<Shift>& shifts() const { return shifts_; }
  // Fractions to move at a time, from all to one tile or a hundredth.
  const std::vector<double>& amounts() const { return amounts_; }

  // `policy` with this fraction of the group's bytes elsewhere, less where less is there.
  Policy shifted(const Policy& policy, const Shift& shift, double amount) const;
  // All policies that differ by one shift of `amount`, by two that exchange as many bytes between
  // two tiers, or by the share of updates that pass through the device.
  std::vector<Policy> neighbours(const Policy& policy, double amount) const;
  // Everything that may move is on `tier`.
  Policy all_on(const Policy& policy, Tier tier) const;
  // Each group whole on one tier, in every combination; and all groups split alike.
  std::vector<Policy> corners(const Policy& policy) const;

 private:
  double bytes_of(std::size_t group) const;
  void add_exchanges(const Policy& policy, const Shift& shift, double amount,
                     std::vector<Policy>& found) const;
  void add_streamed(const Policy& policy, double amount, std::vector<Policy>& found) const;

  const StepOutline& outline_;
  bool engines_;
  std::vector<RoleGroup> groups_;
  std::vector<Shift> shifts_;
  std::vector<double> amounts_;
};

bool same_placement(const Policy& a, const Policy& b);

}  // namespace strata
