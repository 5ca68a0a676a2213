#pragma once
// The variants of a program that a search has looked at, and their plans' simulations, counted
// against its budget.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "placement_search.hpp"
#include "strata/plan/search.hpp"

namespace strata {

// One program, ready to be judged under any policy.
class Variant {
 public:
  Variant(const ProgramVariant& value, Program program, const TierLimits& limits,
          const MachineProfile& machine, const SearchSpace& space);

  const ProgramVariant& value() const { return value_; }
  const Program& program() const { return program_; }
  const Estimator& estimator() const { return estimator_; }
  const PlacementMoves& moves() const { return moves_; }
  double saving_memory(const Policy& policy) const;  // beside what a plan that saves nothing has
  PlacementSearch placements(double caution) const {
    return {estimator_, moves_, capacity_, caution};
  }

  // A plan needed `actual` bytes where the estimate said otherwise: what fits is judged anew.
  void correct(const Capacity& estimated, const Capacity& actual);

 private:
  ProgramVariant value_;
  Program program_;
  Estimator estimator_;
  PlacementMoves moves_;
  Capacity limits_, capacity_;
};

class TrialBench {
 public:
  TrialBench(const ProgramMaker& make_program, const TierLimits& limits,
             const MachineProfile& machine, const SearchSpace& space)
      : make_program_(make_program), limits_(limits), machine_(machine), space_(space) {}

  Variant& variant(const ProgramVariant& value);
  bool spent() const { return simulations_ >= space_.max_simulations || ops_ >= space_.max_ops; }
  // Plans without limits, and simulates what fits; nothing once the budget is spent, or where the
  // same was tried before.
  std::optional<Simulation> simulate(Variant& variant, const Policy& policy);
  Fit fit(Variant& variant, const Policy& policy);
  int simulations() const { return simulations_; }
  // Whether this one was simulated before, or found not to fit.
  bool is_known(const Variant& variant, const Policy& policy) const {
    return tried_.contains(key(variant, policy));
  }

 private:
  static std::vector<double> key(const Variant& variant, const Policy& policy);
  Plan plan(Variant& variant, const Policy& policy);

  const ProgramMaker& make_program_;
  const TierLimits& limits_;
  const MachineProfile& machine_;
  const SearchSpace& space_;
  std::map<std::pair<int, int>, std::unique_ptr<Variant>> variants_;
  std::set<std::vector<double>> tried_;
  int simulations_ = 0;
  std::int64_t ops_ = 0;
};

}  // namespace strata
