#pragma once
// The changes that neighbours of a scenario are made of.

#include <string>
#include <string_view>
#include <vector>

#include "strata/train/forecast.hpp"

namespace strata {

// Roles that are placed by one key.
enum class RoleGroup : std::uint8_t { weights, gradients, optimizer, activations };
inline constexpr RoleGroup role_groups[] = {RoleGroup::weights, RoleGroup::gradients,
                                            RoleGroup::optimizer, RoleGroup::activations};
std::string role_group_name(RoleGroup group);

// Of the first role of the group: the others follow it.
TierFractions fractions_of(const Policy& policy, RoleGroup group);
void set_fractions(Policy& policy, RoleGroup group, const TierFractions& fractions);
// "gpu 25%, cpu 75%".
std::string fractions_text(const TierFractions& fractions);

// Moves up to `share` of each of the group's roles, from where it is.
bool move_share(Policy& policy, RoleGroup group, Tier from, Tier to, double share);
// The same from the slowest tier below `target` up to it.
bool move_up(Policy& policy, RoleGroup group, Tier target, double share);

// What differs, as settings: changed_keys() one by one.
std::vector<std::string> changed_settings(const Scenario& from, const Scenario& to);
std::string joined(const std::vector<std::string>& items, std::string_view separator);

bool puts_on_drives(const Policy& policy);
// offload.nvme_weights in proportion to the rates of the machine's drives, the slowest 1; empty:
// they are as good as alike.
std::vector<double> weights_of_drives(const MachineProfile& machine);

// The number of micro-batches follows where the batch of a step can stay what it is.
enum class StepBatch : std::uint8_t { kept, multiplied };
StepBatch multiply_micro_batch(Scenario& scenario, std::int64_t factor);
// Groups of micro-batches stay of one size: all that there are, or as many as divide them.
void set_accumulation(Scenario& scenario, std::int64_t micro_batches);

}  // namespace strata
