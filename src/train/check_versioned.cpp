#include "train/check_versioned.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/core/error.hpp"
#include "train/policy_keys.hpp"

namespace strata {
namespace {

bool is_of_a_state(Role role) {
  return role == Role::master || role == Role::moment1 || role == Role::moment2;
}

}  // namespace

void check_versioned(const RunConfig& config, const Program& program) {
  if (!config.offload.versioned) return;
  for (const RoleKey& key : role_keys) {
    const TierFractions& fractions = config.offload.*key.field;
    const bool is_there =
        std::ranges::any_of(program.shards, [&](const Shard& s) { return s.role == key.role; });
    if (!is_of_a_state(key.role) || !is_there || (fractions.device <= 0 && fractions.host <= 0))
      continue;
    throw ConfigError(fmt::format(
        "offload.versioned: true makes every step durable on nvme, but {} is {}: set "
        "offload.optimizer: {{nvme: 1}}, or offload.versioned: false and save_strategy: steps",
        key.key, fractions_value(fractions)));
  }
}

}  // namespace strata
