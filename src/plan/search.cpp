#include "strata/plan/search.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "plan/refusal.hpp"
#include "plan/trial_bench.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr SlotCount all_slot_counts[] = {&Policy::weight_slots, &Policy::gradient_slots,
                                         &Policy::activation_slots, &Policy::state_slots,
                                         &Policy::staging_slots};

// One variant under one policy.
struct Trial {
  Variant* variant = nullptr;
  Judged judged;
};

struct Simulated {
  Trial trial;
  Simulation simulation;
  double seconds() const { return simulation.step_seconds; }
};

class Search {
 public:
  Search(const ProgramMaker& make_program, const TierLimits& limits, const MachineProfile& machine,
         const SearchStart& start, const SearchSpace& space)
      : start_(start), space_(space), bench_(make_program, limits, machine, space) {}

  SearchResult run() {
    survey();
    if (!anything_fits() && space_.slots) {
      slots_ = Slots::fewest;
      survey();
    }
    if (!anything_fits()) survey_every_corner();
    simulate_survey();
    if (simulated_.empty()) refuse();
    refine();
    const Simulated& best =
        *std::ranges::min_element(simulated_, {}, [](const Simulated& s) { return s.seconds(); });
    return {best.trial.variant->value(), best.trial.judged.policy, best.simulation,
            bench_.simulations()};
  }

 private:
  // --- By estimate

  // The best placement of each variant; the later ones begin with what served the earlier.
  void survey() {
    for (const ProgramVariant& value : variants_to_try()) consider(value);
    std::ranges::stable_sort(survey_, better);
    const std::vector<Trial> promising(
        survey_.begin(),
        survey_.begin() + std::min<std::ptrdiff_t>(num_widened, std::ssize(survey_)));
    for (const Trial& trial : promising) add_corners(*trial.variant);
    std::ranges::stable_sort(survey_, better);
  }

  bool anything_fits() const {
    return std::ranges::any_of(survey_, [](const Trial& t) { return t.judged.overflow == 0; });
  }

  static bool better(const Trial& a, const Trial& b) { return a.judged.better_than(b.judged); }

  std::vector<ProgramVariant> variants_to_try() const {
    std::vector<int> groups{start_.variant.accumulation_group}, kept{start_.variant.kept_layers};
    if (space_.variants && space_.accumulation_groups) groups = divisors(space_.micro_batches);
    if (space_.variants && space_.kept_layers) kept = quarters(space_.num_layers);
    std::vector<ProgramVariant> values;
    for (int group : groups)
      for (int layers : kept) values.push_back({group, layers});
    return values;
  }

  static std::vector<int> divisors(int number) {
    std::vector<int> found;
    for (int d = 1; d <= number; ++d)
      if (number % d == 0) found.push_back(d);
    return found;
  }

  static std::vector<int> quarters(int number) {
    std::vector<int> found{0};
    for (int part = 1; part <= 4; ++part)
      if (number * part / 4 > found.back()) found.push_back(number * part / 4);
    return found;
  }

  void consider(const ProgramVariant& value) {
    Variant& variant = bench_.variant(value);
    const auto best = std::ranges::min_element(survey_, better);
    const bool has_fit = best != survey_.end() && best->judged.overflow == 0;
    if (!has_fit) return add_corners(variant);
    if (variant.estimator().compute_seconds() > best->judged.score()) return;
    add_surveyed(variant, variant.placements(mean_caution).best_from(best->judged.policy, coarse));
  }

  // The best from each corner of the space, bold and cautious.
  void add_corners(Variant& variant) {
    for (const double caution : {bold, cautious}) {
      const PlacementSearch placements = variant.placements(caution);
      for (const Policy& policy : corners(variant))
        add_surveyed(variant, placements.best_from(policy, coarse));
    }
  }

  // Greedy moves may end where each one alone needs more room than it makes.
  void survey_every_corner() {
    Variant& variant = *std::ranges::min_element(survey_, better)->variant;
    const PlacementSearch placements = variant.placements(mean_caution);
    Policy policy = start_.policy;
    set_slots(policy, slots_);
    for (const Policy& corner : variant.moves().corners(policy))
      add_surveyed(variant, placements.best_from(corner, coarse));
    std::ranges::stable_sort(survey_, better);
  }

  // All are compared with the same caution.
  void add_surveyed(Variant& variant, const Judged& judged) {
    survey_.push_back({&variant, variant.placements(mean_caution).judge(judged.policy)});
  }

  std::vector<Policy> corners(const Variant& variant) const {
    std::vector<Policy> found{start_.policy};
    Policy policy = start_.policy;
    set_slots(policy, slots_);
    for (const UpdateOrder order : space_.update_orders) {
      policy.update_order = order;
      for (const double streamed : {0.0, 1.0}) {
        if (space_.engines) policy.streamed_updates = streamed;
        for (const Tier tier : {Tier::device, Tier::host})
          found.push_back(variant.moves().all_on(policy, tier));
        if (!space_.engines) break;
      }
    }
    return found;
  }

  enum class Slots : std::uint8_t { ample, fewest };

  void set_slots(Policy& policy, Slots slots_wanted) const {
    const bool is_ample = slots_wanted == Slots::ample;
    Policy wanted;
    wanted.weight_slots = is_ample ? 2 : 1;
    wanted.gradient_slots = is_ample ? 2 : 1;
    wanted.activation_slots = is_ample ? 3 : 2;
    wanted.state_slots = is_ample ? 8 : 1;
    wanted.staging_slots = is_ample ? 8 : 1;
    for (const SlotCount slots : all_slot_counts)
      if (may_change(slots)) policy.*slots = wanted.*slots;
  }

  bool may_change(SlotCount slots) const {
    return space_.slots && !std::ranges::count(space_.fixed_slots, slots);
  }

  // --- By simulation

  void simulate_survey() {
    // Estimates rank alike better than unlike: of each kind the best two.
    std::map<std::pair<const Variant*, bool>, int> of_kind;
    for (const Trial& trial : survey_)
      if (std::ssize(simulated_) < num_simulated &&
          of_kind[{trial.variant, trial.judged.policy.streamed_updates > 0.5}]++ < 2)
        settle(trial);
    for (const Trial& trial : survey_)
      if (std::ssize(simulated_) < num_simulated) settle(trial);
    std::ranges::stable_sort(simulated_, {}, [](const Simulated& s) { return s.seconds(); });
  }

  // Simulates the trial, or the nearest to it that fits when its plan turns out to be larger than
  // was estimated.
  void settle(Trial trial) {
    for (int attempt = 0; attempt < 4 && !bench_.spent(); ++attempt) {
      const PlacementSearch placements = trial.variant->placements(mean_caution);
      trial.judged = placements.best_from(trial.judged.policy);
      if (bench_.is_known(*trial.variant, trial.judged.policy)) return;
      if (const auto simulated = try_out(trial)) return simulated_.push_back(*simulated);
    }
  }

  std::optional<Simulated> try_out(const Trial& trial) {
    const auto simulation = bench_.simulate(*trial.variant, trial.judged.policy);
    if (!simulation) return std::nullopt;
    return Simulated{trial, *simulation};
  }

  // From each that was simulated, the best first, to the first better neighbour, as long as there
  // is one and the budget lasts.
  void refine() {
    for (Simulated& at : simulated_)
      while (!bench_.spent() && step_from(at)) {
      }
  }

  bool step_from(Simulated& at) { return step_from(at, coarse) || step_from(at, 0); }

  bool step_from(Simulated& at, double finest) {
    for (const Trial& trial : nearby(at, finest)) {
      const auto simulated = try_out(trial);
      if (!simulated || simulated->seconds() >= at.seconds() * (1 - 1e-6)) continue;
      at = *simulated;
      return true;
    }
    return false;
  }

  // Untried neighbours of the best, the most promising first. One whose estimate, which is a bound,
  // lies above what was simulated is left out.
  std::vector<Trial> nearby(const Simulated& at, double finest) {
    std::vector<Trial> found;
    const Policy& policy = at.trial.judged.policy;
    for (const Policy& near : nearby_policies(*at.trial.variant, policy, finest))
      add_nearby(at, *at.trial.variant, near, found);
    for (const ProgramVariant& value : nearby_variants(at.trial.variant->value())) {
      Variant& variant = bench_.variant(value);
      add_nearby(at, variant, variant.placements(mean_caution).best_from(policy).policy, found);
    }
    std::ranges::stable_sort(found, better);
    return found;
  }

  void add_nearby(const Simulated& at, Variant& variant, const Policy& policy,
                  std::vector<Trial>& found) const {
    if (bench_.is_known(variant, policy)) return;
    const Trial trial{&variant, variant.placements(mean_caution).judge(policy)};
    if (trial.judged.overflow == 0 && trial.judged.estimate.seconds < 1.02 * at.seconds())
      found.push_back(trial);
  }

  std::vector<Policy> nearby_policies(const Variant& variant, const Policy& at,
                                      double finest) const {
    std::vector<Policy> found;
    for (const SlotCount slots : all_slot_counts) {
      if (!may_change(slots)) continue;
      const int fewest = slots == &Policy::activation_slots ? 2 : 1;
      for (const int count : {at.*slots * 2, at.*slots + 1, at.*slots - 1, at.*slots / 2}) {
        if (count < fewest || count > most_slots || count == at.*slots) continue;
        found.push_back(at);
        found.back().*slots = count;
      }
    }
    for (const UpdateOrder order : space_.update_orders) {
      found.push_back(at);
      found.back().update_order = order;
    }
    for (double amount : variant.moves().amounts())
      if (amount >= finest)
        std::ranges::copy(variant.moves().neighbours(at, amount), std::back_inserter(found));
    return found;
  }

  std::vector<ProgramVariant> nearby_variants(const ProgramVariant& at) const {
    std::vector<ProgramVariant> found;
    if (!space_.variants) return found;
    if (space_.kept_layers)
      for (const int change : {std::max(1, space_.num_layers / 8), 1})
        for (const int kept : {at.kept_layers + change, at.kept_layers - change})
          if (kept >= 0 && kept <= space_.num_layers)
            found.push_back({at.accumulation_group, kept});
    if (space_.accumulation_groups)
      for (const int group : divisors(space_.micro_batches))
        if (group != at.accumulation_group) found.push_back({group, at.kept_layers});
    return found;
  }

  // --- Nothing fits

  [[noreturn]] void refuse() {
    const auto nearest = std::ranges::min_element(survey_, better);
    ensure(nearest != survey_.end());
    const Policy& policy = nearest->judged.policy;
    refuse_search(nearest->variant->value(), policy, bench_.fit(*nearest->variant, policy));
  }

  static constexpr double coarse = 0.05;  // of a role: what a survey moves at least
  static constexpr double bold = 0.001, mean_caution = 0.03, cautious = 0.2;
  static constexpr std::ptrdiff_t num_widened = 3;    // variants
  static constexpr std::ptrdiff_t num_simulated = 8;  // of the survey
  static constexpr int most_slots = 128;

  const SearchStart& start_;
  const SearchSpace& space_;
  TrialBench bench_;
  Slots slots_ = Slots::ample;  // of what is surveyed
  std::vector<Trial> survey_;
  std::vector<Simulated> simulated_;
};

// What versioned state rules out: its roles stay on NVMe, and updates wait for the norm.
void keep_versioned(Policy& policy, SearchSpace& space) {
  for (const Role role : {Role::master, Role::moment1, Role::moment2}) {
    policy.fractions[static_cast<std::size_t>(role)] = {0, 0, 1};
    space.fixed_roles.push_back(role);
  }
  std::erase(space.update_orders, UpdateOrder::during_backward);
  if (space.update_orders.empty()) space.update_orders = {UpdateOrder::deferred};
  if (policy.update_order == UpdateOrder::during_backward)
    policy.update_order = UpdateOrder::deferred;
}

}  // namespace

SearchResult search(const ProgramMaker& make_program, const TierLimits& limits,
                    const MachineProfile& machine, const SearchStart& start,
                    const SearchSpace& space) {
  SearchStart from = start;
  SearchSpace within = space;
  if (start.policy.versioned_state) keep_versioned(from.policy, within);
  return Search(make_program, limits, machine, from, within).run();
}

}  // namespace strata
