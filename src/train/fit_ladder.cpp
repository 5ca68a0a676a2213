#include "train/fit_ladder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "train/scenario_changes.hpp"

namespace strata {
namespace {

constexpr int whole = 100;  // hundredths of a role, or all of what is no share

// Changes the scenario to need less of one tier; false when it cannot.
struct Rung {
  std::string name;
  std::function<bool(Scenario&, int hundredths)> change;
  bool is_share = false;           // can be taken in part
  std::optional<Tier> fills = {};  // no further than this tier has room
};

Rung fewer_slots(const char* name, int Policy::*slots, int fewest) {
  return {fmt::format("fewer {} slots", name), [=](Scenario& s, int) {
            int& count = s.choice.policy.*slots;
            if (count <= fewest) return false;
            count = std::max(fewest, count / 2);
            return true;
          }};
}

std::string move_name(RoleGroup group, Tier from, Tier to) {
  const bool is_up = to < from;
  const Tier named = is_up ? to : from;
  return fmt::format("{} {} {}", is_up ? "more" : "less", role_group_name(group),
                     named == Tier::device ? "in GPU memory" : "in CPU memory");
}

Rung moved(RoleGroup group, Tier from, Tier to) {
  const std::optional<Tier> fills = to < from ? std::optional(to) : std::nullopt;
  return {move_name(group, from, to),
          [=](Scenario& s, int hundredths) {
            const bool is_tied = s.choice.policy.versioned_state && group == RoleGroup::optimizer;
            return !is_tied && move_share(s.choice.policy, group, from, to, hundredths / 100.0);
          },
          true, fills};
}

// Half the micro-batch, twice as many of them: the step stays the same.
Rung smaller_micro_batch() {
  return {"a smaller micro-batch", [](Scenario& s, int) {
            if (s.config.per_device_train_batch_size % 2 != 0) return false;
            s.config.per_device_train_batch_size /= 2;
            set_accumulation(s, s.config.gradient_accumulation_steps * 2);
            return true;
          }};
}

Rung recompute_all() {
  return {"no layers that keep their insides",
          [](Scenario& s, int) { return std::exchange(s.choice.variant.kept_layers, 0) > 0; }};
}

Rung no_groups() {
  return {"micro-batches one by one", [](Scenario& s, int) {
            return std::exchange(s.choice.variant.accumulation_group, 1) > 1;
          }};
}

void add_moves(std::vector<Rung>& rungs, std::initializer_list<RoleGroup> groups, Tier from,
               Tier to) {
  for (const RoleGroup group : groups) rungs.push_back(moved(group, from, to));
}

using enum RoleGroup;

std::vector<Rung> device_rungs() {
  std::vector<Rung> rungs{recompute_all(), moved(optimizer, Tier::device, Tier::host),
                          fewer_slots("weight", &Policy::weight_slots, 1),
                          fewer_slots("gradient", &Policy::gradient_slots, 1),
                          fewer_slots("activation", &Policy::activation_slots, 2)};
  add_moves(rungs, {activations, gradients, weights}, Tier::device, Tier::host);
  for (int i = 0; i < 6; ++i) rungs.push_back(smaller_micro_batch());
  rungs.push_back(no_groups());
  return rungs;
}

std::vector<Rung> host_rungs(const TierLimits& limits) {
  std::vector<Rung> rungs;
  add_moves(rungs, {optimizer, gradients, weights, activations}, Tier::host, Tier::device);
  rungs.push_back(fewer_slots("state", &Policy::state_slots, 2));
  rungs.push_back(fewer_slots("staging", &Policy::staging_slots, 2));
  if (!limits.drive_bytes.empty())
    add_moves(rungs, {optimizer, gradients, activations, weights}, Tier::host, Tier::nvme);
  rungs.push_back(no_groups());
  return rungs;
}

std::vector<Rung> nvme_rungs() {
  std::vector<Rung> rungs;
  for (const Tier target : {Tier::host, Tier::device})
    add_moves(rungs, {optimizer, gradients, weights, activations}, Tier::nvme, target);
  return rungs;
}

struct TakenRung {
  const Rung* rung = nullptr;
  int hundredths = whole;
};
using Taken = std::vector<TakenRung>;

Scenario with_rungs(Scenario scenario, const Taken& taken) {
  for (const auto& [rung, hundredths] : taken) rung->change(scenario, hundredths);
  return scenario;
}

// The least of 1..most for which it holds, given that it holds for `most` and that more of it never
// hurts.
template <typename Holds>
int least(int most, const Holds& holds) {
  int lower = 0;
  while (most - lower > 1) {
    const int middle = (lower + most) / 2;
    (holds(middle) ? most : lower) = middle;
  }
  return most;
}

class Ladder {
 public:
  Ladder(const Scenario& start, const TierLimits& limits, FitJudge& judge,
         const MayBecome& may_become)
      : start_(start),
        judge_(judge),
        may_become_(may_become),
        rungs_{device_rungs(), host_rungs(limits), nvme_rungs()} {}

  std::optional<Repair> climb() {
    const Scenario last = end();
    if (judge_.shortage(last)) return std::nullopt;
    give_back();
    Repair repair{with_rungs(start_, taken_), {}};
    for (const TakenRung& taken : taken_)
      if (!std::ranges::count(repair.steps, taken.rung->name))
        repair.steps.push_back(taken.rung->name);
    return repair;
  }

  // Takes rungs as long as a tier is short and there are any.
  Scenario end() {
    Scenario at = start_;
    while (const std::optional<Tier> tier = judge_.shortage(at))
      if (!take_next(*tier, at)) break;
    return at;
  }

 private:
  // Takes the next rung that changes something.
  bool take_next(Tier tier, Scenario& at) {
    const auto row = static_cast<std::size_t>(tier);
    while (next_[row] < rungs_[row].size()) {
      const Rung& rung = rungs_[row][next_[row]++];
      const int hundredths = enough(rung, tier, at);
      if (hundredths == 0) continue;
      rung.change(at, hundredths);
      taken_.push_back({&rung, hundredths});
      return true;
    }
    return false;
  }

  // How much of a rung to take: what ends the shortage, or as much as can be; 0: nothing.
  int enough(const Rung& rung, Tier tier, const Scenario& at) {
    const int most = most_of(rung, at);
    if (most == 0 || !rung.is_share || judge_.is_short(after(rung, most, at), tier)) return most;
    return least(most, [&](int part) { return !judge_.is_short(after(rung, part, at), tier); });
  }

  int most_of(const Rung& rung, const Scenario& at) {
    Scenario tried = at;
    if (!rung.change(tried, whole) || !may_become_(tried)) return 0;
    const auto overfills = [&](int part) {
      return judge_.is_short(after(rung, part, at), *rung.fills);
    };
    if (!rung.fills || !overfills(whole)) return whole;
    return least(whole, overfills) - 1;
  }

  static Scenario after(const Rung& rung, int hundredths, Scenario scenario) {
    rung.change(scenario, hundredths);
    return scenario;
  }

  bool fits(const Taken& taken) {
    const Scenario scenario = with_rungs(start_, taken);
    return may_become_(scenario) && !judge_.shortage(scenario);
  }

  // Rungs that others made superfluous, and more of a role than was needed in the end.
  void give_back() {
    for (std::size_t i = 0; i < taken_.size();) {
      Taken fewer = taken_;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (fits(fewer)) {
        taken_ = std::move(fewer);
      } else {
        shorten(taken_[i]);
        ++i;
      }
    }
  }

  void shorten(TakenRung& taken) {
    if (!taken.rung->is_share) return;
    taken.hundredths = least(taken.hundredths, [&](int part) {
      const int before = std::exchange(taken.hundredths, part);
      const bool still_fits = fits(taken_);
      taken.hundredths = before;
      return still_fits;
    });
  }

  const Scenario& start_;
  FitJudge& judge_;
  const MayBecome& may_become_;
  std::array<std::vector<Rung>, num_tiers> rungs_;
  std::array<std::size_t, num_tiers> next_{};
  Taken taken_;
};

}  // namespace

std::optional<Repair> repaired(const Scenario& scenario, const TierLimits& limits, FitJudge& judge,
                               const MayBecome& may_become) {
  return Ladder(scenario, limits, judge, may_become).climb();
}

Scenario end_of_ladder(const Scenario& scenario, const TierLimits& limits, FitJudge& judge) {
  return Ladder(scenario, limits, judge, [](const Scenario&) { return true; }).end();
}

}  // namespace strata
