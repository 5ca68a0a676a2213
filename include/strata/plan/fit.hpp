#pragma once
// Whether a plan fits its limits, by how much, and the same judged from an outline without making
// the plan. Pure but for what an outlook remembers; one thread for each.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "strata/plan/machine.hpp"
#include "strata/plan/plan.hpp"

namespace strata {

using Capacity = std::array<double, num_tiers>;  // bytes

// Of a rank, for its tiers; all drives together.
Capacity capacity_of(const TierLimits& limits);

// Of the host's limit, what a plan takes: the tier, and what loads and saves need beside it.
std::uint64_t host_bytes_taken(const Plan& plan);

// Where a plan stands with the limits.
struct Fit {
  Capacity need{}, limit{};
  bool fits() const;
  Tier tightest() const;  // the tier that lacks most
  double missing(Tier tier) const;
};

// "gpu 1.2 GiB of 1.0 GiB (204 MiB missing), cpu 3.1 GiB of 8.0 GiB": the tiers in use.
std::string format_fit(const Fit& fit);

// A plan that may need more than there is, on as many drives as the limits have.
Plan plan_without_limits(const Program& program, const TierLimits& limits, const Policy& policy);
Fit fit_of(const Plan& plan, const TierLimits& limits);

// What plans of one program would need of each tier, to a few percent, and what their steps take at
// least: some microseconds a policy.
class PlanOutlook {
 public:
  struct Outlook {
    Capacity tier_bytes{};
    double seconds = 0;  // a bound; 0 where no machine was given
  };
  // `program` may go when the constructor is done; a machine must outlive this. Throws ConfigError
  // when the machine lacks a rate that is needed.
  PlanOutlook(const Program& program, const TierLimits& limits, const MachineProfile* machine);
  ~PlanOutlook();

  Outlook of(const Policy& policy) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace strata
