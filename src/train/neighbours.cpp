// What `--what-if` tabulates, and which changes would help.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "strata/core/error.hpp"
#include "train/fit_ladder.hpp"
#include "train/scenario_changes.hpp"

namespace strata {
namespace {

constexpr double worth_telling = 0.005;  // of tokens/s
constexpr double room_to_use = 0.97;     // of a tier's: tiles and pages are whole

// --- What if

void add_placement(std::vector<Neighbour>& found, const Scenario& from,
                   const TierFractions& fractions) {
  Neighbour neighbour{"optimizer " + fractions_text(fractions), "", from};
  set_fractions(neighbour.scenario.choice.policy, RoleGroup::optimizer, fractions);
  found.push_back(std::move(neighbour));
}

void add_ratio_sweep(std::vector<Neighbour>& found, const Scenario& from,
                     const MachineProfile& machine) {
  for (const double gpu : {1.0, 0.5, 0.25, 0.1, 0.0}) add_placement(found, from, {gpu, 1 - gpu, 0});
  if (machine.drives.empty()) return;
  for (const double nvme : {0.25, 0.5, 0.75, 1.0}) add_placement(found, from, {0, 1 - nvme, nvme});
}

void add_batches(std::vector<Neighbour>& found, const Scenario& from) {
  for (const std::int64_t factor : {2, 4}) {
    Neighbour larger{fmt::format("micro-batch x{}", factor), "", from};
    if (multiply_micro_batch(larger.scenario, factor) == StepBatch::multiplied)
      larger.note = fmt::format("{} times the batch", factor);
    found.push_back(std::move(larger));
  }
  for (const std::int64_t factor : {2, 4}) {
    Neighbour more{fmt::format("accumulation x{}", factor),
                   fmt::format("{} times the batch", factor), from};
    set_accumulation(more.scenario, from.config.gradient_accumulation_steps * factor);
    found.push_back(std::move(more));
  }
}

// --- What would help

// A family of changes, of which only the best is told.
struct Family {
  std::vector<Neighbour> members;

  void add(const Scenario& from, std::string name, const std::function<bool(Scenario&)>& change,
           std::string note = "") {
    Neighbour neighbour{std::move(name), std::move(note), from};
    if (change(neighbour.scenario)) members.push_back(std::move(neighbour));
  }
};

std::uint64_t bytes_of(const Plan& plan, RoleGroup group) {
  std::uint64_t bytes = 0;
  for (const Usage& usage : plan.usage) {
    const bool in_group =
        usage.is_home && ((group == RoleGroup::weights && usage.role == Role::weight) ||
                          (group == RoleGroup::gradients && usage.role == Role::gradient) ||
                          (group == RoleGroup::activations && usage.role == Role::activation) ||
                          (group == RoleGroup::optimizer &&
                           (usage.role == Role::master || usage.role == Role::moment1 ||
                            usage.role == Role::moment2)));
    if (in_group)
      for (const std::uint64_t b : usage.bytes) bytes += b;
  }
  return bytes;
}

double room_in(const Plan& plan, Tier tier) {
  const auto at = static_cast<std::size_t>(tier);
  return room_to_use * (capacity_of(plan.limits)[at] - static_cast<double>(plan.tier_bytes[at]));
}

// As much of one role as there is room for, or all of it: then its slots go.
Family moves_up(const Scenario& from, const Plan& plan, RoleGroup group, Tier target) {
  Family family;
  const auto bytes = static_cast<double>(bytes_of(plan, group));
  if (bytes <= 0) return family;
  for (const double share : {std::min(1.0, room_in(plan, target) / bytes), 1.0})
    family.add(from,
               fmt::format("more {} in {} memory", role_group_name(group),
                           target == Tier::device ? "GPU" : "CPU"),
               [&](Scenario& s) { return move_up(s.choice.policy, group, target, share); });
  return family;
}

Family slots(const Scenario& from, const char* name, int Policy::*slots) {
  Family family;
  for (const int factor : {2, 4})
    family.add(from, fmt::format("more {} slots", name), [&](Scenario& s) {
      s.choice.policy.*slots *= factor;
      return true;
    });
  return family;
}

Family larger_micro_batches(const Scenario& from) {
  Family family;
  for (const std::int64_t factor : {2, 4}) {
    StepBatch batch = StepBatch::kept;
    family.add(from, "a larger micro-batch", [&](Scenario& s) {
      batch = multiply_micro_batch(s, factor);
      return true;
    });
    if (batch == StepBatch::multiplied)
      family.members.back().note = fmt::format("{} times the batch", factor);
  }
  return family;
}

Family accumulation_groups(const Scenario& from) {
  Family family;
  const auto micro_batches = static_cast<int>(from.config.gradient_accumulation_steps);
  for (int group = micro_batches; group > 1; group /= 2) {
    if (micro_batches % group != 0) continue;
    family.add(from, "micro-batches in groups", [&](Scenario& s) {
      const bool is_other = s.choice.variant.accumulation_group != group;
      s.choice.variant.accumulation_group = group;
      return is_other;
    });
  }
  return family;
}

Family formats(const Scenario& from) {
  Family family;
  family.add(from, "a split master (exact)", [](Scenario& s) {
    const bool can = s.config.bf16 && s.config.optimizer_master == MasterFormat::f32;
    s.config.optimizer_master = MasterFormat::split;
    return can;
  });
  return family;
}

Family small_moments(const Scenario& from) {
  Family family;
  for (const DType dtype : {DType::bf16, DType::q8})
    family.add(
        from, fmt::format("{} moments", dtype == DType::q8 ? "8-bit" : "bf16"),
        [&](Scenario& s) {
          const bool is_smaller = dtype_bytes(dtype) < dtype_bytes(s.config.optimizer_moments);
          s.config.optimizer_moments = dtype;
          return is_smaller;
        },
        "approximate");
  return family;
}

Family kept_layers(const Scenario& from) {
  Family family;
  const HfConfig model = read_hf_config(from.config.model_name_or_path);
  const auto layers = static_cast<int>(model.num_hidden_layers);
  for (const int eighths : {1, 2, 4, 8}) {
    const int kept = layers * eighths / 8;
    family.add(from, "layers that keep their insides", [&](Scenario& s) {
      const bool is_more = kept > s.choice.variant.kept_layers;
      s.choice.variant.kept_layers = kept;
      return is_more;
    });
  }
  return family;
}

Family streamed_updates(const Scenario& from) {
  Family family;
  for (const double share : {0.25, 0.5, 0.75, 1.0})
    family.add(from, "updates on the GPU while the state passes through", [&](Scenario& s) {
      const bool is_more = share > s.choice.policy.streamed_updates;
      s.choice.policy.streamed_updates = share;
      return is_more;
    });
  return family;
}

Family deferred_updates(const Scenario& from) {
  Family family;
  family.add(from, "updates that run on into the next forward", [](Scenario& s) {
    const bool waits = s.choice.policy.update_order == UpdateOrder::after_backward;
    s.choice.policy.update_order = UpdateOrder::deferred;
    return waits;
  });
  return family;
}

Family weighed_drives(const Scenario& from, const MachineProfile& machine) {
  Family family;
  family.add(from, "bytes on drives in proportion to their rates", [&](Scenario& s) {
    std::vector<double>& weights = s.config.offload.nvme_weights;
    const auto before = std::exchange(weights, weights_of_drives(machine));
    return puts_on_drives(s.choice.policy) && weights != before;
  });
  return family;
}

std::vector<Family> families(const Scenario& from, const PlannedRun& run,
                             const MachineProfile& machine) {
  std::vector<Family> all;
  for (const RoleGroup group : role_groups)
    for (const Tier target : {Tier::device, Tier::host})
      all.push_back(moves_up(from, run.plan, group, target));
  all.push_back(slots(from, "weight", &Policy::weight_slots));
  all.push_back(slots(from, "gradient", &Policy::gradient_slots));
  all.push_back(slots(from, "activation", &Policy::activation_slots));
  all.push_back(slots(from, "state", &Policy::state_slots));
  all.push_back(slots(from, "staging", &Policy::staging_slots));
  all.push_back(larger_micro_batches(from));
  all.push_back(weighed_drives(from, machine));
  all.push_back(accumulation_groups(from));
  all.push_back(formats(from));
  all.push_back(small_moments(from));
  all.push_back(kept_layers(from));
  all.push_back(streamed_updates(from));
  all.push_back(deferred_updates(from));
  return all;
}

// A change as it would have to be made to fit.
struct Candidate {
  std::size_t family = 0;
  const Neighbour* change = nullptr;
  Neighbour fitted;
  double most_gain = 0;  // of tokens/s
};

class ImprovementSearch {
 public:
  ImprovementSearch(const Scenario& from, const Forecast& now, const MachineProfile& machine)
      : from_(from),
        machine_(machine),
        limits_(run_limits(from.config, machine)),
        tokens_per_s_(now.prediction.tokens_per_s()),
        judge_(limits_, &machine),
        families_(families(from, now.run, machine)),
        best_(families_.size()),
        tries_(families_.size()) {
    judge_.learn(from, fit_of(now.run.plan, now.run.plan.limits));
  }

  // The best of each family, in no order.
  std::vector<Improvement> run() {
    for (const Candidate& candidate : candidates())
      if (judge_.planned_ops() < most_ops && tries_[candidate.family]++ < most_tries)
        try_candidate(candidate);
    std::vector<Improvement> found;
    for (const auto& best : best_)
      if (best && !is_told(found, best->neighbour.scenario)) found.push_back(*best);
    return found;
  }

 private:
  static constexpr std::int64_t most_ops = 500'000;  // of all plans made, together
  static constexpr int most_tries = 2;               // of a family
  static constexpr int most_repairs = 3;             // of a change

  // Those that could be of use, the most promising first.
  std::vector<Candidate> candidates() {
    std::vector<Candidate> found;
    for (std::size_t family = 0; family < families_.size(); ++family)
      for (const Neighbour& change : families_[family].members)
        if (auto candidate = candidate_of(family, change)) found.push_back(std::move(*candidate));
    std::ranges::stable_sort(found, std::greater{}, &Candidate::most_gain);
    return found;
  }

  std::optional<Candidate> candidate_of(std::size_t family, const Neighbour& change) {
    try {
      auto fitted = fit(change);
      if (!fitted) return std::nullopt;
      const double gain = gain_of(fitted->scenario, judge_.least_seconds(fitted->scenario));
      if (gain <= worth_telling) return std::nullopt;
      return Candidate{family, &change, std::move(*fitted), gain};
    } catch (const ConfigError&) {  // the model or the config does not allow it
      return std::nullopt;
    }
  }

  // The change, with what else it takes to fit.
  std::optional<Neighbour> fit(const Neighbour& change) {
    if (!judge_.shortage(change.scenario)) return change;
    const auto kept = changed_settings(from_, change.scenario);
    const auto is_kept = [&](const Scenario& scenario) {
      const auto settings = changed_settings(from_, scenario);
      return std::ranges::all_of(
          kept, [&](const std::string& s) { return std::ranges::count(settings, s) > 0; });
    };
    auto repair = repaired(change.scenario, limits_, judge_, is_kept);
    if (!repair) return std::nullopt;
    return Neighbour{change.name + ", with " + joined(repair->steps, ", "), change.note,
                     std::move(repair->scenario)};
  }

  double gain_of(const Scenario& scenario, double step_seconds) const {
    const RunConfig& config = scenario.config;
    const auto tokens = static_cast<double>(config.cutoff_len * config.per_device_train_batch_size *
                                            config.gradient_accumulation_steps * machine_.ranks);
    return tokens / step_seconds / tokens_per_s_ - 1;
  }

  // A plan may need more than was judged: then the change is fitted anew.
  void try_candidate(const Candidate& candidate) {
    std::optional<Neighbour> tried = candidate.fitted;
    for (int repairs = 0; tried && repairs < most_repairs; ++repairs) {
      if (const auto seconds = simulated_seconds(tried->scenario))
        return compare(candidate.family, *tried, gain_of(tried->scenario, *seconds));
      tried = fit(*candidate.change);
    }
  }

  // Nothing when it does not fit.
  std::optional<double> simulated_seconds(const Scenario& scenario) {
    const JudgedPlan made = judge_.plan(scenario);
    if (made.fit.fits())
      return simulate(made.run.program, made.run.plan, "train", machine_).step_seconds;
    judge_.learn(scenario, made.fit);
    return std::nullopt;
  }

  void compare(std::size_t family, const Neighbour& tried, double gain) {
    auto& best = best_[family];
    if (gain > worth_telling && (!best || gain > best->gain + worth_telling))
      best = Improvement{tried, gain};
  }

  bool is_told(const std::vector<Improvement>& found, const Scenario& scenario) const {
    return std::ranges::any_of(found, [&](const Improvement& told) {
      return changed_settings(told.neighbour.scenario, scenario).empty();
    });
  }

  const Scenario& from_;
  const MachineProfile& machine_;
  const TierLimits limits_;
  const double tokens_per_s_;
  FitJudge judge_;
  const std::vector<Family> families_;
  std::vector<std::optional<Improvement>> best_;  // by family
  std::vector<int> tries_;                        // by family
};

}  // namespace

std::vector<Neighbour> what_if_neighbours(const Scenario& scenario, const MachineProfile& machine) {
  std::vector<Neighbour> found;
  add_ratio_sweep(found, scenario, machine);
  add_batches(found, scenario);
  return found;
}

std::vector<Improvement> improvements(const Scenario& scenario, const Forecast& now,
                                      const MachineProfile& machine, std::size_t num_max) {
  std::vector<Improvement> found = ImprovementSearch(scenario, now, machine).run();
  std::ranges::stable_sort(found, std::greater{}, &Improvement::gain);
  if (found.size() > num_max)
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(num_max), found.end());
  return found;
}

}  // namespace strata
