#include "train/fit_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/run_buffers.hpp"

namespace strata {
namespace {

// Scenarios of one key have one program.
std::string program_key(const Scenario& scenario) {
  const RunConfig& config = scenario.config;
  return fmt::format(
      "{} {} {} {} {} {}", config.per_device_train_batch_size, config.gradient_accumulation_steps,
      static_cast<int>(config.optimizer_master), static_cast<int>(config.optimizer_moments),
      scenario.choice.variant.accumulation_group, scenario.choice.variant.kept_layers);
}

std::int64_t num_ops(const Plan& plan) {
  std::int64_t ops = 0;
  for (const Schedule& schedule : plan.schedules)
    ops += static_cast<std::int64_t>(schedule.ops.size());
  return ops;
}

}  // namespace

PlanOutlook::Outlook FitJudge::outlook(const Scenario& scenario) {
  auto& known = outlooks_[program_key(scenario)];
  if (known == nullptr) {
    const PlannedRun run = declare_run(scenario.config, scenario.choice.variant);
    known = std::make_unique<PlanOutlook>(run.program, limits_, machine_);
  }
  return known->of(scenario.choice.policy);
}

bool FitJudge::lacks(const Capacity& need, Tier tier) const {
  const auto at = static_cast<std::size_t>(tier);
  return need[at] > capacity_[at];
}

std::optional<Tier> FitJudge::shortage(const Scenario& scenario) {
  const Capacity need = outlook(scenario).tier_bytes;
  for (const Tier tier : {Tier::device, Tier::host, Tier::nvme})
    if (lacks(need, tier)) return tier;
  return std::nullopt;
}

bool FitJudge::is_short(const Scenario& scenario, Tier tier) {
  return lacks(outlook(scenario).tier_bytes, tier);
}

double FitJudge::least_seconds(const Scenario& scenario) { return outlook(scenario).seconds; }

void FitJudge::learn(const Scenario& scenario, const Fit& fit) {
  const Capacity estimated = outlook(scenario).tier_bytes;
  for (std::size_t tier = 0; tier < num_tiers; ++tier)
    capacity_[tier] = fit.limit[tier] - (fit.need[tier] - estimated[tier]);
}

JudgedPlan FitJudge::plan(const Scenario& scenario) {
  PlannedRun run = declare_run(scenario.config, scenario.choice.variant);
  const TierLimits limits = limits_of(scenario, run, limits_);
  run.plan = plan_without_limits(run.program, limits, scenario.choice.policy);
  planned_ops_ += num_ops(run.plan);
  const Fit fit = fit_of(run.plan, limits);
  return {std::move(run), fit};
}

Fit FitJudge::prove(const Scenario& scenario) {
  const Fit fit = plan(scenario).fit;
  const Capacity before = capacity_;
  learn(scenario, fit);
  if (std::exchange(has_proved_, true) && !fit.fits())
    std::ranges::transform(capacity_, before, capacity_.begin(),
                           [](double a, double b) { return std::min(a, b); });
  return fit;
}

TierLimits limits_of(const Scenario& scenario, const PlannedRun& run, const TierLimits& machine) {
  TierLimits limits = machine;
  const std::vector<double>& weights = scenario.config.offload.nvme_weights;
  if (weights.size() == limits.drive_bytes.size()) limits.drive_weights = weights;
  return with_buffers(std::move(limits), scenario.config, Purpose::train, run,
                      scenario.choice.policy);
}

}  // namespace strata
