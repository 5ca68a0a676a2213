// Memory of a placement, by the rules of Layout and Emitter: homes, the slots that the movements
// ask for, boundary tensors at their peak.

#include <algorithm>
#include <set>

#include "plan/estimate.hpp"
#include "plan/saved_state.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

using TierLoad = std::array<double, num_tiers>;

constexpr std::uint64_t page = 4096;

double& on(TierLoad& bytes, Tier tier) { return bytes[static_cast<std::size_t>(tier)]; }

// Which rings of slots a placement asks for.
struct Movement {
  // [role]: tiles that pass the tier on their way to an update and back.
  std::array<bool, num_state_roles> to_host{}, to_device{};
  bool weight_from_nvme = false, sum_on_nvme = false, contribution_to_host = false;
  bool device_updates = false;
};

class MemoryEstimate {
 public:
  MemoryEstimate(const StepOutline& outline, const Policy& policy, const PlacedState& placed)
      : outline_(outline),
        policy_(policy),
        pieces_(placed.pieces),
        finds_sums_(placed.finds_sums) {}

  TierLoad bytes() {
    on(bytes_, Tier::device) = static_cast<double>(outline_.fixed_device);
    on(bytes_, Tier::host) = static_cast<double>(outline_.fixed_host);
    homes();
    look_at_movements();
    block_slots();
    tile_slots();
    norm_partials();
    boundary_homes();
    boundary_slots();
    if (policy_.background_saves) on(bytes_, Tier::host) += saving_memory(outline_, pieces_);
    if (policy_.versioned_state) second_versions();
    return bytes_;
  }

 private:
  void homes() {
    if (outline_.pieces_are_tiles) return tile_homes();
    for (std::size_t role = 0; role < num_state_roles; ++role) {
      const TierFractions& f = policy_.fractions[role];
      const double all = outline_.roles[role].bytes + outline_.roles[role].padding;
      on(bytes_, Tier::device) += f.device * all;
      on(bytes_, Tier::host) += f.host * all;
      on(bytes_, Tier::nvme) += f.nvme * all;
    }
  }

  void tile_homes() {
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      for (std::size_t role = 0; role < num_state_roles; ++role)
        on(bytes_, pieces_[i].tier[role]) += static_cast<double>(
            align_up(static_cast<std::uint64_t>(outline_.pieces[i].bytes[role]), page));
  }

  // All of it is on NVMe.
  void second_versions() {
    for (const Role role : {Role::master, Role::moment1, Role::moment2}) {
      const RoleOutline& outline = outline_.roles[static_cast<std::size_t>(role)];
      on(bytes_, Tier::nvme) += outline.bytes + outline.padding;
    }
  }

  void look_at_movements() {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const UpdatePiece& piece = outline_.pieces[i];
      const BlockOutline& block = outline_.blocks[static_cast<std::size_t>(piece.block)];
      const Tier gradient = pieces_[i].tier[gradient_role];
      movement_.weight_from_nvme |= pieces_[i].tier[weight_role] == Tier::nvme;
      movement_.sum_on_nvme |= has_sum(i) && gradient == Tier::nvme;
      movement_.contribution_to_host |=
          has_sum(i) && gradient != Tier::device && !block.stored_as_contributed;
      movement_.device_updates |= piece.updated_elements > 0 && pieces_[i].engine == Tier::device;
      for (std::size_t role = 0; role < num_state_roles; ++role)
        if (piece.bytes[role] > 0)
          look_at_update(role, piece.updated[role] > 0, pieces_[i].tier[role], pieces_[i].engine);
    }
  }

  void look_at_update(std::size_t role, bool is_updated, Tier home, Tier engine) {
    if (!is_updated) {  // another rank's, whose new weight goes home here as well
      movement_.to_host[role] |= role == weight_role && home == Tier::nvme;
      return;
    }
    if (home == engine) return;
    const bool is_at_hand = role == gradient_role && home == Tier::nvme && finds_sums_;
    movement_.to_host[role] |= !is_at_hand && (engine == Tier::host || home == Tier::nvme);
    movement_.to_device[role] |= engine == Tier::device;
  }

  bool has_sum(std::size_t piece) const { return outline_.pieces[piece].bytes[gradient_role] > 0; }

  void block_slots() {
    for (const auto& [slot, size] : outline_.weight_classes) {
      if (!outline_.sliced[weight_role] && !has_fetched_block(slot)) continue;
      const int rings = outline_.shares_updates ? 2 : 1;  // one for new weights of all ranks
      on(bytes_, Tier::device) += rings * whole_slots(slot, size, policy_.weight_slots);
    }
    for (const auto& [slot, size] : outline_.contribution_classes)
      on(bytes_, Tier::device) += whole_slots(slot, size, policy_.gradient_slots);
    for (const auto& [slot, size] : outline_.reduced_classes)
      on(bytes_, Tier::device) += whole_slots(slot, size, policy_.gradient_slots);
  }

  static double whole_slots(std::uint64_t slot, const SlotClass& size, int wanted) {
    return static_cast<double>(slot) * std::max(size.at_once, std::min(wanted, size.blocks));
  }

  bool has_fetched_block(std::uint64_t slot) const {
    if (!outline_.pieces_are_tiles) return policy_.fractions[weight_role].device < 1;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto block = static_cast<std::size_t>(outline_.pieces[i].block);
      if (outline_.blocks[block].weight_slot == slot &&
          pieces_[i].tier[weight_role] != Tier::device)
        return true;
    }
    return false;
  }

  void tile_slots() {
    const auto tile = [&](std::size_t role) {
      return static_cast<double>(outline_.roles[role].tile);
    };
    for (std::size_t role = 0; role < num_state_roles; ++role) {
      if (movement_.to_host[role]) on(bytes_, Tier::host) += tile(role) * policy_.state_slots;
      if (movement_.to_device[role]) on(bytes_, Tier::device) += tile(role) * policy_.state_slots;
    }
    double staged = 0;
    if (movement_.weight_from_nvme) staged += tile(weight_role);
    if (movement_.sum_on_nvme) staged += tile(gradient_role);
    if (movement_.contribution_to_host) staged += static_cast<double>(outline_.contribution_tile);
    on(bytes_, Tier::host) += staged * policy_.staging_slots;
    if (movement_.device_updates && policy_.update_order != UpdateOrder::during_backward)
      on(bytes_, Tier::device) += page;  // the update's scalars
  }

  // Sums of squares of the gradients that live, at least in part, on the device.
  void norm_partials() {
    std::vector<bool> counted(outline_.blocks.size());
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const auto block = static_cast<std::size_t>(outline_.pieces[i].block);
      if (counted[block] || pieces_[i].tier[gradient_role] != Tier::device) continue;
      if (!is_squared(outline_.pieces[i])) continue;
      counted[block] = true;
      on(bytes_, Tier::device) += static_cast<double>(outline_.blocks[block].norm_partials);
    }
  }

  // Every rank squares its own part, and what it updates during backward.
  bool is_squared(const UpdatePiece& piece) const {
    if (policy_.update_order == UpdateOrder::during_backward) return piece.updated_elements > 0;
    return piece.elements > 0;
  }

  void boundary_homes() {
    const BoundaryDemand& demand = outline_.boundary_demand(policy_);
    for (std::size_t tier = 0; tier < num_tiers; ++tier) bytes_[tier] += demand.homes[tier];
  }

  void boundary_slots() {
    const BoundaryDemand& demand = outline_.boundary_demand(policy_);
    const auto slots = [&](std::uint64_t slot) {
      return static_cast<double>(slot) * policy_.activation_slots;
    };
    on(bytes_, Tier::device) +=
        slots(outline_.activation_slot) + static_cast<double>(outline_.passing_slots);
    if (demand.saved_off_device) on(bytes_, Tier::device) += slots(outline_.saved_slot);
    if (demand.activations_on_nvme) on(bytes_, Tier::host) += slots(outline_.activation_slot);
    if (demand.saved_on_nvme) on(bytes_, Tier::host) += slots(outline_.saved_slot);
  }

  const StepOutline& outline_;
  const Policy& policy_;
  const std::vector<PlacedPiece>& pieces_;
  const bool finds_sums_;
  Movement movement_;
  TierLoad bytes_{};
};

// Whether Emitter::save() has to fetch the piece's tiles of a role for itself.
bool is_fetched_to_save(const StepOutline& outline, const PlacedPiece& piece, std::size_t role) {
  if (role == gradient_role || piece.tier[role] != Tier::device) return false;
  const bool is_at_hand = piece.engine == Tier::host;  // where its update is what it waits for
  if (role == weight_role) return outline.splits_masters && !is_at_hand;
  const bool is_split = outline.splits_masters && role == static_cast<std::size_t>(Role::master);
  return !is_split || !is_at_hand || piece.tier[weight_role] == Tier::host;
}

}  // namespace

double saving_memory(const StepOutline& outline, const std::vector<PlacedPiece>& pieces) {
  std::set<std::uint64_t> slots;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (std::size_t role = 0; role < num_state_roles; ++role)
      if (outline.pieces[i].is_saved && outline.roles[role].bytes > 0 &&
          is_fetched_to_save(outline, pieces[i], role))
        slots.insert(outline.roles[role].tile);
  std::uint64_t bytes = outline.save_buffers;
  for (const std::uint64_t slot : slots) bytes += slot * checkpoint_slots;
  return static_cast<double>(bytes);
}

std::array<double, num_tiers> estimate_memory(const StepOutline& outline, const Policy& policy,
                                              const PlacedState& placed) {
  return MemoryEstimate(outline, policy, placed).bytes();
}

}  // namespace strata
