// The nearest scenario that fits: rungs of a ladder are taken until it does, those of the tier that
// is short, the cheapest first; then each that was not needed after all is given back.

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "strata/core/error.hpp"
#include "train/scenario_changes.hpp"

namespace strata {
namespace {

// Changes the scenario to need less of one tier; false when it cannot.
using Rung = std::function<bool(Scenario&)>;

bool fewer(int& slots, int fewest) {
  if (slots <= fewest) return false;
  slots = std::max(fewest, slots / 2);
  return true;
}

Rung fewer_slots(int Policy::*slots, int fewest) {
  return [=](Scenario& s) { return fewer(s.choice.policy.*slots, fewest); };
}

Rung down(RoleGroup group, Tier from, Tier to, double share) {
  return [=](Scenario& s) { return move_down(s.choice.policy, group, from, to, share); };
}

// Half the micro-batch, twice as many of them: the step stays the same.
bool smaller_micro_batch(Scenario& s) {
  if (s.config.per_device_train_batch_size % 2 != 0) return false;
  s.config.per_device_train_batch_size /= 2;
  set_accumulation(s, s.config.gradient_accumulation_steps * 2);
  return true;
}

bool recompute_all(Scenario& s) { return std::exchange(s.choice.variant.kept_layers, 0) > 0; }
bool no_groups(Scenario& s) { return std::exchange(s.choice.variant.accumulation_group, 1) > 1; }

std::vector<Rung> device_rungs() {
  std::vector<Rung> rungs{recompute_all};
  for (int i = 0; i < 4; ++i)
    rungs.push_back(down(RoleGroup::optimizer, Tier::device, Tier::host, 0.25));
  rungs.insert(rungs.end(),
               {fewer_slots(&Policy::weight_slots, 1), fewer_slots(&Policy::gradient_slots, 1),
                fewer_slots(&Policy::activation_slots, 2)});
  for (const RoleGroup group : {RoleGroup::activations, RoleGroup::gradients, RoleGroup::weights})
    for (const double share : {0.5, 1.0})
      rungs.push_back(down(group, Tier::device, Tier::host, share));
  for (int i = 0; i < 6; ++i) rungs.emplace_back(smaller_micro_batch);
  rungs.emplace_back(no_groups);
  return rungs;
}

std::vector<Rung> host_rungs(const TierLimits& limits) {
  std::vector<Rung> rungs{fewer_slots(&Policy::state_slots, 2),
                          fewer_slots(&Policy::staging_slots, 2)};
  if (!limits.drive_bytes.empty()) {
    for (int i = 0; i < 10; ++i)
      rungs.push_back(down(RoleGroup::optimizer, Tier::host, Tier::nvme, 0.1));
    for (const RoleGroup group : {RoleGroup::gradients, RoleGroup::activations, RoleGroup::weights})
      for (const double share : {0.5, 1.0})
        rungs.push_back(down(group, Tier::host, Tier::nvme, share));
  }
  rungs.emplace_back(no_groups);
  return rungs;
}

std::vector<Rung> nvme_rungs() {
  std::vector<Rung> rungs;
  for (int i = 0; i < 10; ++i)
    rungs.push_back([](Scenario& s) {
      return move_up(s.choice.policy, RoleGroup::optimizer, Tier::host, 0.1);
    });
  return rungs;
}

// Which tier is short; nothing when the scenario fits.
std::optional<Tier> shortage(const Scenario& scenario, const TierLimits& limits) {
  try {
    plan_run(scenario.config, limits, scenario.choice, Proof::trusted);
  } catch (const OutOfMemory& refusal) {
    const std::string& where = refusal.where();
    if (where.starts_with("tier gpu")) return Tier::device;
    return where.starts_with("tier nvme") ? Tier::nvme : Tier::host;
  }
  return std::nullopt;
}

struct Ladder {
  std::vector<Rung> rungs;
  std::size_t next = 0;
};

// Takes the next rung that changes something.
const Rung* climb(Ladder& ladder, Scenario& scenario) {
  while (ladder.next < ladder.rungs.size()) {
    const Rung& rung = ladder.rungs[ladder.next++];
    Scenario tried = scenario;
    if (!rung(tried)) continue;
    scenario = std::move(tried);
    return &rung;
  }
  return nullptr;
}

Scenario with_rungs(Scenario scenario, const std::vector<const Rung*>& rungs) {
  for (const Rung* rung : rungs) (*rung)(scenario);
  return scenario;
}

// Without the rungs that another made superfluous.
Scenario without_spare_rungs(const Scenario& start, std::vector<const Rung*> taken,
                             const TierLimits& limits) {
  for (std::size_t i = 0; i < taken.size() && taken.size() > 1;) {
    std::vector<const Rung*> fewer_rungs = taken;
    fewer_rungs.erase(fewer_rungs.begin() + static_cast<std::ptrdiff_t>(i));
    if (shortage(with_rungs(start, fewer_rungs), limits)) {
      ++i;
    } else {
      taken = std::move(fewer_rungs);
    }
  }
  return with_rungs(start, taken);
}

}  // namespace

std::optional<Scenario> nearest_fit(const Scenario& scenario, const TierLimits& limits) {
  std::array<Ladder, num_tiers> ladders{{{device_rungs()}, {host_rungs(limits)}, {nvme_rungs()}}};
  Scenario tried = scenario;
  std::vector<const Rung*> taken;
  while (const std::optional<Tier> tier = shortage(tried, limits)) {
    const Rung* rung = climb(ladders[static_cast<std::size_t>(*tier)], tried);
    if (rung == nullptr) return std::nullopt;
    taken.push_back(rung);
  }
  return without_spare_rungs(scenario, std::move(taken), limits);
}

}  // namespace strata
