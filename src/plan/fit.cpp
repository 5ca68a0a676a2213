#include "strata/plan/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plan/estimate.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::uint64_t no_limit = ~std::uint64_t{0} / 2;

double number(std::uint64_t bytes) { return static_cast<double>(bytes); }

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::uint64_t>(bytes)); }

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

Capacity capacity_of(const TierLimits& limits) {
  double drives = 0;
  for (std::uint64_t bytes : limits.drive_bytes) drives += number(bytes);
  const double host = number(limits.host_bytes) - number(limits.buffer_bytes);
  return {number(limits.device_bytes), std::max(0.0, host), drives};
}

std::uint64_t host_bytes_taken(const Plan& plan) {
  return plan.tier_bytes[static_cast<std::size_t>(Tier::host)] + plan.limits.buffer_bytes;
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

std::string format_fit(const Fit& fit) {
  std::string text;
  for (Tier tier : {Tier::device, Tier::host, Tier::nvme}) {
    const auto at = static_cast<std::size_t>(tier);
    if (fit.need[at] == 0 && fit.limit[at] == 0) continue;
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", tier_name(tier),
                        bytes_text(fit.need[at]), bytes_text(fit.limit[at]));
    if (fit.missing(tier) > 0) text += fmt::format(" ({} missing)", bytes_text(fit.missing(tier)));
  }
  return text;
}

Plan plan_without_limits(const Program& program, const TierLimits& limits, const Policy& policy) {
  TierLimits open = limits;
  open.device_bytes = open.host_bytes = no_limit;
  std::ranges::fill(open.drive_bytes, no_limit);
  return make_plan(program, open, policy);
}

Fit fit_of(const Plan& plan, const TierLimits& limits) {
  Fit fit;
  fit.limit = capacity_of(limits);
  fit.limit[static_cast<std::size_t>(Tier::nvme)] = drive_capacity(limits, plan);
  for (std::size_t tier = 0; tier < num_tiers; ++tier)
    fit.need[tier] = number(plan.tier_bytes[tier]);
  return fit;
}

struct PlanOutlook::Parts {
  std::optional<StepOutline> outline;  // without a machine
  std::optional<Estimator> estimator;
};

PlanOutlook::PlanOutlook(const Program& program, const TierLimits& limits,
                         const MachineProfile* machine)
    : parts_(std::make_unique<Parts>()) {
  if (machine == nullptr)
    parts_->outline.emplace(program);
  else
    parts_->estimator.emplace(program, *machine, limits.drive_bytes.size());
}

PlanOutlook::~PlanOutlook() = default;

PlanOutlook::Outlook PlanOutlook::of(const Policy& policy) const {
  if (parts_->estimator) {
    const Estimate estimate = parts_->estimator->estimate(policy);
    return {estimate.tier_bytes, estimate.least_seconds};
  }
  return {estimate_memory(*parts_->outline, policy, place_state(*parts_->outline, policy)), 0};
}

}  // namespace strata
