#include "plan/trial_bench.hpp"

#include "plan/estimate.hpp"

namespace strata {
namespace {

// A schedule as large as that of training, which is not simulated: what it takes is known.
Policy without_saves(Policy policy) {
  policy.background_saves = false;
  return policy;
}

}  // namespace

Variant::Variant(const ProgramVariant& value, Program program, const TierLimits& limits,
                 const MachineProfile& machine, const SearchSpace& space)
    : value_(value),
      program_(std::move(program)),
      estimator_(program_, machine, limits.drive_bytes.size()),
      moves_(estimator_.outline(), space, !limits.drive_bytes.empty()),
      limits_(capacity_of(limits)),
      capacity_(limits_) {}

void Variant::correct(const Capacity& estimated, const Capacity& actual) {
  for (std::size_t tier = 0; tier < num_tiers; ++tier)
    capacity_[tier] = limits_[tier] - (actual[tier] - estimated[tier]);
}

double Variant::saving_memory(const Policy& policy) const {
  const StepOutline& outline = estimator_.outline();
  return strata::saving_memory(outline, place_state(outline, policy).pieces);
}

Variant& TrialBench::variant(const ProgramVariant& value) {
  auto& known = variants_[{value.accumulation_group, value.kept_layers}];
  if (known == nullptr)
    known = std::make_unique<Variant>(value, make_program_(value), limits_, machine_, space_);
  return *known;
}

std::vector<double> TrialBench::key(const Variant& variant, const Policy& policy) {
  std::vector<double> key{static_cast<double>(variant.value().accumulation_group),
                          static_cast<double>(variant.value().kept_layers),
                          static_cast<double>(policy.update_order),
                          policy.streamed_updates,
                          static_cast<double>(policy.weight_slots),
                          static_cast<double>(policy.gradient_slots),
                          static_cast<double>(policy.activation_slots),
                          static_cast<double>(policy.state_slots),
                          static_cast<double>(policy.staging_slots)};
  for (const TierFractions& f : policy.fractions) {
    key.push_back(f.device);
    key.push_back(f.nvme);
  }
  return key;
}

Plan TrialBench::plan(Variant& variant, const Policy& policy) {
  Plan plan = plan_without_limits(variant.program(), limits_, policy);
  for (const Schedule& schedule : plan.schedules)
    ops_ += static_cast<std::int64_t>(schedule.ops.size());
  return plan;
}

Fit TrialBench::fit(Variant& variant, const Policy& policy) {
  return fit_of(plan(variant, policy), limits_);
}

std::optional<Simulation> TrialBench::simulate(Variant& variant, const Policy& policy) {
  if (spent() || !tried_.insert(key(variant, policy)).second) return std::nullopt;
  const Plan planned = plan(variant, without_saves(policy));
  Fit fit = fit_of(planned, limits_);
  if (policy.background_saves)
    fit.need[static_cast<std::size_t>(Tier::host)] += variant.saving_memory(policy);
  variant.correct(variant.estimator().estimate(policy).tier_bytes, fit.need);
  if (!fit.fits()) return std::nullopt;
  ++simulations_;
  return strata::simulate(variant.program(), planned, "train", machine_);
}

}  // namespace strata
