#include "strata/train/forecast.hpp"

#include <fmt/format.h>

#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

// Adds to a line of settings what differs.
class KeyLine {
 public:
  template <typename T>
  void add(const char* key, const T& from, const T& to) {
    if (from != to) append(fmt::format("{}={}", key, to));
  }
  void add(const char* key, const TierFractions& from, const TierFractions& to) {
    if (alike(from, to)) return;
    append(fmt::format("'{}={{gpu: {:.4g}, cpu: {:.4g}, nvme: {:.4g}}}'", key, to.device, to.host,
                       to.nvme));
  }
  static bool alike(const TierFractions& a, const TierFractions& b) {
    return a.device == b.device && a.host == b.host && a.nvme == b.nvme;
  }
  const std::string& text() const { return text_; }

 private:
  void append(const std::string& item) { text_ += (text_.empty() ? "" : " ") + item; }
  std::string text_;
};

const TierFractions& fractions_of(const Scenario& scenario, Role role) {
  return scenario.choice.policy.fractions[static_cast<std::size_t>(role)];
}

// All three roles of the optimizer have one key where they live alike.
void add_optimizer(KeyLine& line, const Scenario& from, const Scenario& to) {
  const auto& master = fractions_of(to, Role::master);
  const bool as_one = KeyLine::alike(master, fractions_of(to, Role::moment1)) &&
                      KeyLine::alike(master, fractions_of(to, Role::moment2));
  const bool changed =
      !KeyLine::alike(master, fractions_of(from, Role::master)) ||
      !KeyLine::alike(fractions_of(to, Role::moment1), fractions_of(from, Role::moment1)) ||
      !KeyLine::alike(fractions_of(to, Role::moment2), fractions_of(from, Role::moment2));
  if (!changed) return;
  if (as_one) return line.add("offload.optimizer", TierFractions{-1, -1, -1}, master);
  line.add("offload.master", fractions_of(from, Role::master), master);
  line.add("offload.moment1", fractions_of(from, Role::moment1), fractions_of(to, Role::moment1));
  line.add("offload.moment2", fractions_of(from, Role::moment2), fractions_of(to, Role::moment2));
}

void add_formats(KeyLine& line, const RunConfig& from, const RunConfig& to) {
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

void add_slots(KeyLine& line, const Policy& from, const Policy& to) {
  line.add("offload.weight_slots", from.weight_slots, to.weight_slots);
  line.add("offload.gradient_slots", from.gradient_slots, to.gradient_slots);
  line.add("offload.activation_slots", from.activation_slots, to.activation_slots);
  line.add("offload.state_slots", from.state_slots, to.state_slots);
  line.add("offload.staging_slots", from.staging_slots, to.staging_slots);
}

std::string order_name(UpdateOrder order) {
  switch (order) {
    case UpdateOrder::after_backward:
      return "after_backward";
    case UpdateOrder::deferred:
      return "deferred";
    case UpdateOrder::during_backward:
      return "during_backward";
  }
  return "?";
}

void add_variant(KeyLine& line, const PlanChoice& from, const PlanChoice& to) {
  line.add("offload.update_order", order_name(from.policy.update_order),
           order_name(to.policy.update_order));
  line.add("offload.streamed_updates", from.policy.streamed_updates, to.policy.streamed_updates);
  line.add("offload.accumulation_group", from.variant.accumulation_group,
           to.variant.accumulation_group);
  line.add("offload.keep_layers", from.variant.kept_layers, to.variant.kept_layers);
}

// "tier cpu needs ..." of a refusal as "cpu: 12 GiB".
std::string missing_of(const OutOfMemory& refusal) {
  std::string where = refusal.where();
  if (where.starts_with("tier ")) where = where.substr(5);
  return fmt::format("{}: {} more", where,
                     format_bytes(refusal.wanted_bytes() - refusal.free_bytes()));
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

}  // namespace

Scenario scenario_of(const RunConfig& config, const MachineProfile& machine) {
  check_drives(config, machine);
  Scenario scenario{config, plan_choice(config)};
  scenario.config.world = machine.ranks;
  return scenario;
}

std::string changed_keys(const Scenario& from, const Scenario& to) {
  KeyLine line;
  line.add("per_device_train_batch_size", from.config.per_device_train_batch_size,
           to.config.per_device_train_batch_size);
  line.add("gradient_accumulation_steps", from.config.gradient_accumulation_steps,
           to.config.gradient_accumulation_steps);
  add_formats(line, from.config, to.config);
  line.add("offload.weights", fractions_of(from, Role::weight), fractions_of(to, Role::weight));
  line.add("offload.gradients", fractions_of(from, Role::gradient),
           fractions_of(to, Role::gradient));
  add_optimizer(line, from, to);
  line.add("offload.activations", fractions_of(from, Role::activation),
           fractions_of(to, Role::activation));
  add_slots(line, from.choice.policy, to.choice.policy);
  add_variant(line, from.choice, to.choice);
  return line.text();
}

RunFacts run_facts(const RunConfig& config, const PlannedRun& run, int ranks) {
  RunFacts facts;
  facts.tokens_per_step = config.cutoff_len * config.per_device_train_batch_size *
                          config.gradient_accumulation_steps * ranks;
  const DType exported = config.export_dtype.value_or(run.program.contribution_dtype);
  facts.export_bytes =
      static_cast<std::uint64_t>(run.model->num_parameters() * dtype_bytes(exported));
  facts.load_bytes = load_buffer_bytes();
  facts.save_bytes = export_buffer_bytes(exported);
  return facts;
}

Forecast forecast(const Scenario& scenario, const MachineProfile& machine, Proof proof) {
  Forecast result;
  result.run =
      plan_run(scenario.config, run_limits(scenario.config, machine), scenario.choice, proof);
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
  } catch (const OutOfMemory& refusal) {
    trial.refusal = "does not fit: " + missing_of(refusal);
  } catch (const ConfigError& refusal) {
    trial.refusal = refusal.what();
  }
  return trial;
}

}  // namespace strata
