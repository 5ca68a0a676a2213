#include "strata/train/auto_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strata/core/error.hpp"
#include "strata/train/forecast.hpp"
#include "train/policy_keys.hpp"

namespace strata {
namespace {

bool is_set(const RunConfig& config, const char* key) {
  return std::ranges::any_of(config.resolved, [&](const RunConfig::Origin& entry) {
    return entry.key == key && entry.origin != "default";
  });
}

// As early as clipping and the non-finite policy allow, or later.
std::vector<UpdateOrder> allowed_orders(const RunConfig& config) {
  const UpdateOrder asked = update_order(config);
  if (is_set(config, "offload.update_order") && config.offload.update_order != "auto")
    return {asked};
  RunConfig open = config;
  open.offload.update_order = "auto";
  if (update_order(open) == UpdateOrder::deferred) return {UpdateOrder::deferred};
  return {UpdateOrder::deferred, UpdateOrder::during_backward};
}

void fill_in(const PlanChoice& choice, OffloadConfig& offload) {
  for (const RoleKey& key : role_keys)
    offload.*key.field = choice.policy.fractions[static_cast<std::size_t>(key.role)];
  for (const SlotKey& key : slot_keys) offload.*key.field = choice.policy.*key.slots;
  offload.update_order = update_order_key(choice.policy.update_order);
  offload.streamed_updates = choice.policy.streamed_updates;
  offload.accumulation_group = choice.variant.accumulation_group;
  offload.keep_layers = choice.variant.kept_layers;
}

}  // namespace

SearchSpace search_space(const RunConfig& config) {
  const HfConfig hf = read_hf_config(config.model_name_or_path);
  SearchSpace space;
  space.micro_batches = static_cast<int>(config.gradient_accumulation_steps);
  space.num_layers = static_cast<int>(hf.num_hidden_layers);
  space.accumulation_groups =
      !hf.tie_word_embeddings && !is_set(config, "offload.accumulation_group");
  space.kept_layers = !is_set(config, "offload.keep_layers");
  space.engines = !is_set(config, "offload.streamed_updates");
  space.update_orders = allowed_orders(config);
  for (const RoleKey& key : role_keys)
    if (is_set(config, key.key)) space.fixed_roles.push_back(key.role);
  for (const SlotKey& key : slot_keys)
    if (is_set(config, key.key)) space.fixed_slots.push_back(key.slots);
  return space;
}

RunConfig auto_plan(const RunConfig& config, const MachineProfile& machine) {
  const Scenario found = fastest_scenario(scenario_of(config, machine), machine);
  RunConfig chosen = config;
  fill_in(found.choice, chosen.offload);
  chosen.offload.nvme_weights = found.config.offload.nvme_weights;
  chosen.offload.automatic = false;
  return chosen;
}

std::string auto_plan_block(const RunConfig& chosen) {
  const OffloadConfig& offload = chosen.offload;
  std::string text = "offload:\n";
  const auto add = [&](std::string_view key, const auto& value) {
    text += fmt::format("  {}: {}\n", key.substr(key.find('.') + 1), value);
  };
  for (const RoleKey& key : role_keys) add(key.key, fractions_value(offload.*key.field));
  for (const SlotKey& key : slot_keys) add(key.key, offload.*key.field);
  add("offload.update_order", offload.update_order);
  add("offload.streamed_updates", offload.streamed_updates);
  add("offload.accumulation_group", offload.accumulation_group);
  add("offload.keep_layers", offload.keep_layers);
  if (!offload.nvme_weights.empty())
    add("offload.nvme_weights", weights_value(offload.nvme_weights));
  return text;
}

void check_searched(const RunConfig& config) {
  if (!config.offload.automatic) return;
  throw ConfigError(
      "offload.auto: true needs the rates of the machine: give --machine FILE, one of "
      "configs/machines or written here with strata bench all --write-profile FILE");
}

}  // namespace strata
