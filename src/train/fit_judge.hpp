#pragma once
// Whether scenarios fit, judged by outlooks of their programs and put right by the plans that were
// made. Thread contract: one thread.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "strata/plan/fit.hpp"
#include "strata/train/forecast.hpp"

namespace strata {

// The plan of a scenario, which may need more than there is, and how it stands with the limits.
struct JudgedPlan {
  PlannedRun run;
  Fit fit;
};

class FitJudge {
 public:
  // Without a machine, times are not judged. What it is given must outlive it.
  explicit FitJudge(const TierLimits& limits, const MachineProfile* machine = nullptr)
      : limits_(limits), capacity_(capacity_of(limits)), machine_(machine) {}

  // The tier that is short: of several the fastest.
  std::optional<Tier> shortage(const Scenario& scenario);
  bool is_short(const Scenario& scenario, Tier tier);
  // A step takes no less.
  double least_seconds(const Scenario& scenario);

  // Teaches nothing yet.
  JudgedPlan plan(const Scenario& scenario);
  // A plan of this scenario was made: what outlooks say is moved to what it says.
  void learn(const Scenario& scenario, const Fit& fit);
  // Plans it and learns from it. Of several that do not fit, what each taught is kept: tiles are
  // whole, so what is put right on one tier may be wrong on another.
  Fit prove(const Scenario& scenario);
  bool proves(const Scenario& scenario) { return prove(scenario).fits(); }
  // Ops of all plans made.
  std::int64_t planned_ops() const { return planned_ops_; }

 private:
  PlanOutlook::Outlook outlook(const Scenario& scenario);
  bool lacks(const Capacity& need, Tier tier) const;

  const TierLimits& limits_;
  Capacity capacity_;  // the limits, less what outlooks forget
  bool has_proved_ = false;
  const MachineProfile* machine_;
  std::map<std::string, std::unique_ptr<PlanOutlook>> outlooks_;  // by program
  std::int64_t planned_ops_ = 0;
};

// What a scenario may have of a machine, where that gives its ranks as much as that.
TierLimits limits_of(const Scenario& scenario, const PlannedRun& run, const TierLimits& machine);

}  // namespace strata
