#include "train/scenario_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "strata/plan/fraction_grid.hpp"
#include "strata/plan/simulate.hpp"

namespace strata {
namespace {

std::span<const Role> roles_of(RoleGroup group) {
  static constexpr Role weights[] = {Role::weight}, gradients[] = {Role::gradient},
                        optimizer[] = {Role::master, Role::moment1, Role::moment2},
                        activations[] = {Role::activation};
  switch (group) {
    case RoleGroup::weights:
      return weights;
    case RoleGroup::gradients:
      return gradients;
    case RoleGroup::optimizer:
      return optimizer;
    case RoleGroup::activations:
      return activations;
  }
  return {};
}

}  // namespace

std::string role_group_name(RoleGroup group) {
  switch (group) {
    case RoleGroup::weights:
      return "weights";
    case RoleGroup::gradients:
      return "gradients";
    case RoleGroup::optimizer:
      return "optimizer";
    case RoleGroup::activations:
      return "activations";
  }
  return "?";
}

TierFractions fractions_of(const Policy& policy, RoleGroup group) {
  return policy.fractions[static_cast<std::size_t>(roles_of(group).front())];
}

void set_fractions(Policy& policy, RoleGroup group, const TierFractions& fractions) {
  for (const Role role : roles_of(group))
    policy.fractions[static_cast<std::size_t>(role)] = fractions;
}

std::string fractions_text(const TierFractions& fractions) {
  std::string text;
  const auto add = [&](const char* tier, double share) {
    if (share > 0) text += fmt::format("{}{} {:.3g}%", text.empty() ? "" : ", ", tier, share * 100);
  };
  add("gpu", fractions.device);
  add("cpu", fractions.host);
  add("nvme", fractions.nvme);
  return text;
}

bool move_share(Policy& policy, RoleGroup group, Tier from, Tier to, double share) {
  bool moved = false;
  for (const Role role : roles_of(group)) {
    TierFractions& fractions = policy.fractions[static_cast<std::size_t>(role)];
    moved = move_fraction(fractions, from, to, share) > 0 || moved;
  }
  return moved;
}

bool move_up(Policy& policy, RoleGroup group, Tier target, double share) {
  bool moved = false;
  for (const Role role : roles_of(group)) {
    TierFractions& fractions = policy.fractions[static_cast<std::size_t>(role)];
    double left = share;
    for (const Tier source : {Tier::nvme, Tier::host})
      if (source > target) left -= move_fraction(fractions, source, target, left);
    moved = moved || left < share;
  }
  return moved;
}

bool puts_on_drives(const Policy& policy) {
  return std::ranges::any_of(policy.fractions, [](const TierFractions& f) { return f.nvme > 0; });
}

std::vector<double> weights_of_drives(const MachineProfile& machine) {
  constexpr double alike = 1.05;
  std::vector<double> weights = machine_limits(machine).drive_weights;
  if (weights.empty()) return {};
  const auto [slowest, fastest] = std::ranges::minmax(weights);
  if (slowest <= 0 || fastest < alike * slowest) return {};
  for (double& weight : weights) weight = std::round(100 * weight / slowest) / 100;
  return weights;
}

std::string joined(const std::vector<std::string>& items, std::string_view separator) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

StepBatch multiply_micro_batch(Scenario& scenario, std::int64_t factor) {
  RunConfig& config = scenario.config;
  config.per_device_train_batch_size *= factor;
  if (config.gradient_accumulation_steps % factor != 0) return StepBatch::multiplied;
  set_accumulation(scenario, config.gradient_accumulation_steps / factor);
  return StepBatch::kept;
}

void set_accumulation(Scenario& scenario, std::int64_t micro_batches) {
  const std::int64_t before =
      std::exchange(scenario.config.gradient_accumulation_steps, micro_batches);
  int& group = scenario.choice.variant.accumulation_group;
  group = static_cast<int>(
      group > 1 && group == before ? micro_batches : std::gcd<std::int64_t>(group, micro_batches));
}

}  // namespace strata
