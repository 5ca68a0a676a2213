#include "train/scenario_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

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

double& share_on(TierFractions& fractions, Tier tier) {
  switch (tier) {
    case Tier::device:
      return fractions.device;
    case Tier::host:
      return fractions.host;
    case Tier::nvme:
      break;
  }
  return fractions.nvme;
}

// Whole hundredths, and no dust left over.
double take(double& from, double share) {
  const double taken = from <= share + 0.005 ? from : std::floor(share * 100) / 100;
  from = from == taken ? 0 : std::round((from - taken) * 1e4) / 1e4;
  return taken;
}

void put(double& onto, double share) { onto = std::round((onto + share) * 1e4) / 1e4; }

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

bool move_up(Policy& policy, RoleGroup group, Tier target, double share) {
  TierFractions fractions = fractions_of(policy, group);
  double moved = 0;
  for (const Tier source : {Tier::nvme, Tier::host})
    if (source > target) moved += take(share_on(fractions, source), share - moved);
  put(share_on(fractions, target), moved);
  set_fractions(policy, group, fractions);
  return moved > 0;
}

bool move_down(Policy& policy, RoleGroup group, Tier source, Tier target, double share) {
  TierFractions fractions = fractions_of(policy, group);
  const double moved = take(share_on(fractions, source), share);
  put(share_on(fractions, target), moved);
  set_fractions(policy, group, fractions);
  return moved > 0;
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
