#include "strata/train/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/train/run_steps.hpp"
#include "train/policy_keys.hpp"
#include "train/run_buffers.hpp"
#include "train/scenario_changes.hpp"
#include "train/state_pieces.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

bool alike(const TierFractions& a, const TierFractions& b) {
  return a.device == b.device && a.host == b.host && a.nvme == b.nvme;
}

// The settings that differ.
class ChangedKeys {
 public:
  template <typename T>
  void add(const char* key, const T& from, const T& to) {
    if (from != to) items_.push_back(fmt::format("{}={}", key, to));
  }
  void add(const char* key, const TierFractions& from, const TierFractions& to) {
    if (!alike(from, to)) put(key, fractions_value(to));
  }
  void put(const char* key, const std::string& value) {
    items_.push_back(fmt::format("'{}={}'", key, value));
  }
  std::vector<std::string> items() && { return std::move(items_); }

 private:
  std::vector<std::string> items_;
};

const TierFractions& fractions_of(const Scenario& scenario, Role role) {
  return scenario.choice.policy.fractions[static_cast<std::size_t>(role)];
}

bool is_of_optimizer(Role role) { return std::ranges::count(optimizer_roles, role) > 0; }

// All three roles of the optimizer have one key where they live alike.
bool moves_optimizer_as_one(const Scenario& from, const Scenario& to) {
  bool as_one = true, changed = false;
  for (const Role role : optimizer_roles) {
    as_one = as_one && alike(fractions_of(to, role), fractions_of(to, Role::master));
    changed = changed || !alike(fractions_of(to, role), fractions_of(from, role));
  }
  return as_one && changed;
}

void add_placement(ChangedKeys& keys, const Scenario& from, const Scenario& to) {
  const bool as_one = moves_optimizer_as_one(from, to);
  for (const RoleKey& key : role_keys) {
    if (as_one && key.role == Role::master)
      keys.put("offload.optimizer", fractions_value(fractions_of(to, key.role)));
    if (as_one && is_of_optimizer(key.role)) continue;
    keys.add(key.key, fractions_of(from, key.role), fractions_of(to, key.role));
  }
}

void add_formats(ChangedKeys& line, const RunConfig& from, const RunConfig& to) {
  const auto master = [](const RunConfig& c) {
    return std::string(c.optimizer_master == MasterFormat::split ? "split" : "fp32");
  };
  const auto moments = [](const RunConfig& c) {
    return std::string(c.optimizer_moments == DType::f32 ? "fp32"
                                                         : dtype_name(c.optimizer_moments));
  };
  line.add("optimizer_master", master(from), master(to));
  line.add("optimizer_moments", moments(from), moments(to));
}

void add_variant(ChangedKeys& line, const PlanChoice& from, const PlanChoice& to) {
  line.add("offload.update_order", update_order_key(from.policy.update_order),
           update_order_key(to.policy.update_order));
  line.add("offload.streamed_updates", from.policy.streamed_updates, to.policy.streamed_updates);
  line.add("offload.accumulation_group", from.variant.accumulation_group,
           to.variant.accumulation_group);
  line.add("offload.keep_layers", from.variant.kept_layers, to.variant.kept_layers);
}

// "cpu: 12 GiB more".
std::string missing_of(const TierOverflow& refusal) {
  return fmt::format("{}: {} more", tier_name(refusal.tier()),
                     format_bytes(refusal.missing_bytes()));
}

void check_drives(const RunConfig& config, const MachineProfile& machine) {
  if (!machine.drives.empty()) return;
  for (const TierFractions& fractions : plan_choice(config).policy.fractions)
    if (fractions.nvme > 0)
      throw ConfigError(fmt::format(
          "the config puts state on nvme, but machine {} has no drives: move it to cpu or gpu, or "
          "give the machine file drives",
          machine.name));
}

// A share of all steps is known where the steps are.
std::int64_t known_save_steps(const RunConfig& config) {
  if (config.save_steps < 1 && config.max_steps <= 0) return 0;
  return num_steps(config.save_steps, config.max_steps);
}

}  // namespace

Scenario scenario_of(const RunConfig& config, const MachineProfile& machine) {
  check_drives(config, machine);
  Scenario scenario{config, plan_choice(config)};
  scenario.config.world = machine.ranks;
  scenario.config.device = planned_device(config, machine);
  return scenario;
}

std::vector<std::string> changed_settings(const Scenario& from, const Scenario& to) {
  ChangedKeys keys;
  keys.add("per_device_train_batch_size", from.config.per_device_train_batch_size,
           to.config.per_device_train_batch_size);
  keys.add("gradient_accumulation_steps", from.config.gradient_accumulation_steps,
           to.config.gradient_accumulation_steps);
  add_formats(keys, from.config, to.config);
  add_placement(keys, from, to);
  for (const SlotKey& key : slot_keys)
    keys.add(key.key, from.choice.policy.*key.slots, to.choice.policy.*key.slots);
  add_variant(keys, from.choice, to.choice);
  if (from.config.offload.nvme_weights != to.config.offload.nvme_weights)
    keys.put("offload.nvme_weights", weights_value(to.config.offload.nvme_weights));
  return std::move(keys).items();
}

std::string changed_keys(const Scenario& from, const Scenario& to) {
  return joined(changed_settings(from, to), " ");
}

TierOverflow advised(const TierOverflow& refusal, const RunConfig& config) {
  const auto& limit =
      refusal.tier() == Tier::device ? config.offload.gpu_limit : config.offload.cpu_limit;
  return refusal.with(limit ? TierOverflow::Limit::config : TierOverflow::Limit::machine);
}

TierOverflow advised_here(const TierOverflow& refusal, const RunConfig& config,
                          std::uint64_t available, int num_host_ranks) {
  const TierOverflow told = advised(refusal, config);
  if (refusal.tier() != Tier::host || config.offload.cpu_limit) return told;
  return told.with(TierOverflow::Limit::machine,
                   fmt::format("of the {} that are available {} are left for the rest of the run{}",
                               format_bytes(available),
                               format_bytes(host_reserve_bytes(available, num_host_ranks)),
                               num_host_ranks == 1 ? "" : ", the others shared by the ranks"));
}

RunFacts run_facts(const RunConfig& config, const PlannedRun& run, int ranks) {
  RunFacts facts;
  facts.tokens_per_step = config.cutoff_len * config.per_device_train_batch_size *
                          config.gradient_accumulation_steps * ranks;
  facts.export_bytes = exported_bytes(config, run);
  facts.checkpoint_bytes = checkpoint_bytes(state_vectors(run));
  if (config.save_strategy == SaveStrategy::steps) facts.save_steps = known_save_steps(config);
  const RunBuffers buffers = run_buffers(config, Purpose::train, run, run.plan.policy);
  facts.load_bytes = buffers.load_bytes;
  facts.save_bytes = buffers.save_bytes;
  return facts;
}

Forecast forecast(const Scenario& scenario, const MachineProfile& machine, Proof proof) {
  Forecast result;
  try {
    result.run =
        plan_run(scenario.config, run_limits(scenario.config, machine), scenario.choice, proof);
  } catch (const TierOverflow& refusal) {
    throw advised(refusal, scenario.config);
  }
  result.prediction = predict(result.run.program, result.run.plan, machine,
                              run_facts(scenario.config, result.run, machine.ranks));
  return result;
}

Trial try_out(const Scenario& scenario, const MachineProfile& machine) {
  Trial trial;
  try {
    const Forecast tried = forecast(scenario, machine, Proof::trusted);
    trial.step_seconds = tried.prediction.simulation.step_seconds;
    trial.tokens_per_s = tried.prediction.tokens_per_s();
    trial.mfu = tried.prediction.mfu;
    trial.bound_by = tried.prediction.simulation.bound_by;
  } catch (const TierOverflow& refusal) {
    trial.refusal = "does not fit: " + missing_of(refusal);
  } catch (const ConfigError& refusal) {
    trial.refusal = refusal.what();
  }
  return trial;
}

}  // namespace strata
