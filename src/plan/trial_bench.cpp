#include "plan/trial_bench.hpp"

#include <algorithm>
#include <numeric>

namespace strata {
namespace {

constexpr std::uint64_t no_limit = ~std::uint64_t{0} / 2;

double number(std::uint64_t bytes) { return static_cast<double>(bytes); }

Capacity capacity_of(const TierLimits& limits) {
  double drives = 0;
  for (std::uint64_t bytes : limits.drive_bytes) drives += number(bytes);
  return {number(limits.device_bytes), number(limits.host_bytes), drives};
}

// Drives are filled in proportion to their weights: the first that is full ends it.
double drive_capacity(const TierLimits& limits, const Plan& plan) {
  double most_full = 0;
  const double all = number(plan.tier_bytes[static_cast<std::size_t>(Tier::nvme)]);
  for (std::size_t drive = 0; drive < plan.drive_bytes.size(); ++drive)
    most_full = std::max(most_full, number(plan.drive_bytes[drive]) /
                                        std::max(1.0, number(limits.drive_bytes[drive])));
  return most_full > 0 ? all / most_full : capacity_of(limits)[2];
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

bool Fit::fits() const {
  for (std::size_t tier = 0; tier < num_tiers; ++tier)
    if (need[tier] > limit[tier]) return false;
  return true;
}

double Fit::missing(Tier tier) const {
  const auto at = static_cast<std::size_t>(tier);
  return std::max(0.0, need[at] - limit[at]);
}

Tier Fit::tightest() const {
  Tier worst = Tier::device;
  for (Tier tier : {Tier::host, Tier::nvme})
    if (missing(tier) > missing(worst)) worst = tier;
  return worst;
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

Plan TrialBench::plan_without_limits(Variant& variant, const Policy& policy) {
  TierLimits open = limits_;
  open.device_bytes = open.host_bytes = no_limit;
  std::ranges::fill(open.drive_bytes, no_limit);
  Plan plan = make_plan(variant.program(), open, policy);
  for (const Schedule& schedule : plan.schedules)
    ops_ += static_cast<std::int64_t>(schedule.ops.size());
  return plan;
}

Fit TrialBench::fit_of(const Plan& plan) const {
  Fit fit;
  fit.limit = capacity_of(limits_);
  fit.limit[static_cast<std::size_t>(Tier::nvme)] = drive_capacity(limits_, plan);
  for (std::size_t tier = 0; tier < num_tiers; ++tier)
    fit.need[tier] = number(plan.tier_bytes[tier]);
  return fit;
}

Fit TrialBench::fit(Variant& variant, const Policy& policy) {
  return fit_of(plan_without_limits(variant, policy));
}

std::optional<Simulation> TrialBench::simulate(Variant& variant, const Policy& policy) {
  if (spent() || !tried_.insert(key(variant, policy)).second) return std::nullopt;
  const Plan plan = plan_without_limits(variant, policy);
  const Fit fit = fit_of(plan);
  variant.correct(variant.estimator().estimate(policy).tier_bytes, fit.need);
  if (!fit.fits()) return std::nullopt;
  ++simulations_;
  return strata::simulate(variant.program(), plan, "train", machine_);
}

}  // namespace strata
