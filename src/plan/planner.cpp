#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plan/emitter.hpp"
#include "plan/layout.hpp"
#include "plan/saved_state.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/plan.hpp"

namespace strata {
namespace {

void check_fractions(const Policy& policy) {
  for (std::size_t role = 0; role < policy.fractions.size(); ++role) {
    const TierFractions& f = policy.fractions[role];
    const double sum = f.device + f.host + f.nvme;
    if (f.device < 0 || f.host < 0 || f.nvme < 0 || std::abs(sum - 1) > 1e-9)
      throw ConfigError(fmt::format(
          "fractions of role {} are gpu {} cpu {} nvme {}: they must lie in [0, 1] and sum to 1",
          role_name(static_cast<Role>(role)), f.device, f.host, f.nvme));
  }
}

void check_slots(const Policy& policy) {
  const int fewest = std::min({policy.weight_slots, policy.gradient_slots, policy.activation_slots,
                               policy.state_slots, policy.staging_slots});
  if (fewest < 1) throw ConfigError("every kind of slot needs at least one");
  if (policy.activation_slots < 2)
    throw ConfigError(
        "offload.activation_slots must be at least 2: a block reads one boundary and writes the "
        "next");
}

void check_streamed(const Policy& policy) {
  if (policy.streamed_updates >= 0 && policy.streamed_updates <= 1) return;
  throw ConfigError(fmt::format("offload.streamed_updates is {}: it is a fraction, from 0 to 1",
                                policy.streamed_updates));
}

// A crash leaves what a commit made durable: a step's master and moments together, or none of them.
void check_versioned(const Program& program, const Layout& layout, const Policy& policy) {
  if (!policy.versioned_state) return;
  if (policy.update_order == UpdateOrder::during_backward)
    throw ConfigError(
        "offload.versioned contradicts offload.update_order: during_backward: where one rank has "
        "updated a tile, another may still be before its last commit. Set offload.update_order: "
        "deferred");
  for (const Shard& shard : program.shards) {
    if (!is_optimizer_state(shard.role)) continue;
    if (is_split(program, shard.id))
      throw ConfigError(
          "offload.versioned contradicts optimizer_master: split: half of such a master is the "
          "working weight, which a versioned store does not keep. Set optimizer_master: fp32");
    if (!layout.all_on(shard.id, Tier::nvme))
      throw ConfigError(fmt::format(
          "offload.versioned needs all of the master and of the moments on NVMe, where a crash "
          "leaves them: not all of '{}' is. Set offload.master and offload.moments to nvme: 1",
          shard.name));
  }
}

}  // namespace

Plan make_plan(const Program& program, const TierLimits& limits, const Policy& policy) {
  validate(program);
  check_fractions(policy);
  check_slots(policy);
  check_streamed(policy);
  Plan plan;
  Layout layout(program, limits, policy);
  check_versioned(program, layout, policy);
  for (const Sequence& sequence : program.sequences)
    plan.schedules.push_back(Emitter(program, policy, layout, sequence).emit());
  if (const Sequence* train = program.sequence("train"); train && policy.background_saves)
    plan.schedules.push_back(Emitter(program, policy, layout, *train, Checkpointing::on).emit());
  layout.finish(plan);
  return plan;
}

}  // namespace strata
