// What `--what-if` tabulates, and which changes would help.

#include <fmt/format.h>

#include <algorithm>
#include <functional>

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
  const std::uint64_t limit =
      tier == Tier::device ? plan.limits.device_bytes : plan.limits.host_bytes;
  return room_to_use * static_cast<double>(limit - plan.tier_bytes[static_cast<std::size_t>(tier)]);
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

Family kept_layers(const Scenario& from, const Program& program) {
  Family family;
  const auto layers = static_cast<int>(program.blocks.size()) - 2;  // between embedding and head
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

std::vector<Family> families(const Scenario& from, const PlannedRun& run) {
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
  all.push_back(accumulation_groups(from));
  all.push_back(formats(from));
  all.push_back(small_moments(from));
  all.push_back(kept_layers(from, run.program));
  all.push_back(streamed_updates(from));
  all.push_back(deferred_updates(from));
  return all;
}

std::optional<Improvement> best_of(const Family& family, double tokens_per_s,
                                   const MachineProfile& machine) {
  std::optional<Improvement> best;
  for (const Neighbour& member : family.members) {
    const Trial trial = try_out(member.scenario, machine);
    const double gain = trial.tokens_per_s / tokens_per_s - 1;
    if (trial.fits() && gain > worth_telling && (!best || gain > best->gain + worth_telling))
      best = Improvement{member, gain};
  }
  return best;
}

}  // namespace

std::vector<Neighbour> what_if_neighbours(const Scenario& scenario, const MachineProfile& machine) {
  std::vector<Neighbour> found;
  add_ratio_sweep(found, scenario, machine);
  add_batches(found, scenario);
  return found;
}

std::vector<Improvement> improvements(const Scenario& scenario, const Forecast& now,
                                      const MachineProfile& machine, std::size_t num_max) {
  std::vector<Improvement> found;
  for (const Family& family : families(scenario, now.run))
    if (const auto best = best_of(family, now.prediction.tokens_per_s(), machine))
      found.push_back(*best);
  std::ranges::stable_sort(found, std::greater{}, &Improvement::gain);
  if (found.size() > num_max)
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(num_max), found.end());
  return found;
}

}  // namespace strata
