#include "plan/placement_moves.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "strata/plan/fraction_grid.hpp"

namespace strata {
namespace {

bool is_boundary(Role role) { return role == Role::activation || role == Role::saved; }

std::size_t index(Role role) { return static_cast<std::size_t>(role); }

}  // namespace

PlacementMoves::PlacementMoves(const StepOutline& outline, const SearchSpace& space,
                               bool has_drives)
    : outline_(outline), engines_(space.engines) {
  const auto is_free = [&](Role role) {
    const bool exists =
        is_boundary(role) ? outline.has_boundaries(role) : outline.roles[index(role)].bytes > 0;
    return space.placement && exists && !std::ranges::count(space.fixed_roles, role);
  };
  for (const RoleGroup& together : {RoleGroup{Role::weight}, RoleGroup{Role::gradient},
                                    RoleGroup{Role::master, Role::moment1, Role::moment2},
                                    RoleGroup{Role::activation}, RoleGroup{Role::saved}}) {
    RoleGroup group;
    std::ranges::copy_if(together, std::back_inserter(group), is_free);
    if (!group.empty()) groups_.push_back(group);
  }
  const std::vector<Tier> tiers = has_drives
                                      ? std::vector<Tier>{Tier::device, Tier::host, Tier::nvme}
                                      : std::vector<Tier>{Tier::device, Tier::host};
  for (std::size_t group = 0; group < groups_.size(); ++group)
    for (Tier from : tiers)
      for (Tier to : tiers)
        if (from != to) shifts_.push_back({group, from, to});
  std::int64_t most_tiles = 1;
  for (const RoleOutline& role : outline.roles) most_tiles = std::max(most_tiles, role.tiles);
  const double finest = std::max(0.01, 1.0 / static_cast<double>(most_tiles));
  for (double amount : {1.0, 0.5, 0.25, 0.1, 0.05, 0.02})
    if (amount > finest) amounts_.push_back(amount);
  amounts_.push_back(finest);
}

double PlacementMoves::bytes_of(std::size_t group) const {
  double bytes = 0;
  for (Role role : groups_[group]) {
    if (!is_boundary(role)) {
      bytes += outline_.roles[index(role)].bytes;
      continue;
    }
    for (const BoundaryTensor& tensor : outline_.boundaries)
      if (tensor.role == role) bytes += static_cast<double>(tensor.bytes);
  }
  return bytes;
}

Policy PlacementMoves::shifted(const Policy& policy, const Shift& shift, double amount) const {
  Policy moved = policy;
  for (Role role : groups_[shift.group])
    move_fraction(moved.fractions[index(role)], shift.from, shift.to, amount);
  return moved;
}

std::vector<Policy> PlacementMoves::neighbours(const Policy& policy, double amount) const {
  std::vector<Policy> found;
  for (const Shift& shift : shifts_) {
    const Policy moved = shifted(policy, shift, amount);
    if (same_placement(moved, policy)) continue;
    found.push_back(moved);
    add_exchanges(moved, shift, amount, found);
  }
  add_streamed(policy, amount, found);
  return found;
}

void PlacementMoves::add_exchanges(const Policy& policy, const Shift& shift, double amount,
                                   std::vector<Policy>& found) const {
  const double bytes = amount * bytes_of(shift.group);
  for (const Shift& back : shifts_) {
    if (back.group == shift.group || back.from != shift.to || back.to == shift.to) continue;
    const double finest = amounts_.back();
    const double steps = std::ceil(bytes / std::max(1.0, bytes_of(back.group)) / finest - 1e-6);
    const Policy exchanged = shifted(policy, back, std::min(1.0, steps * finest));
    if (!same_placement(exchanged, policy)) found.push_back(exchanged);
  }
}

void PlacementMoves::add_streamed(const Policy& policy, double amount,
                                  std::vector<Policy>& found) const {
  if (!engines_) return;
  for (double change : {amount, -amount}) {
    Policy moved = policy;
    moved.streamed_updates = on_grid(policy.streamed_updates + change);
    if (!same_placement(moved, policy)) found.push_back(moved);
  }
}

Policy PlacementMoves::all_on(const Policy& policy, Tier tier) const {
  Policy moved = policy;
  for (const Shift& shift : shifts_)
    if (shift.to == tier) moved = shifted(moved, shift, 1);
  return moved;
}

std::vector<Policy> PlacementMoves::corners(const Policy& policy) const {
  std::vector<Policy> found{policy};
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<Policy> placed;
    for (const Policy& at : found)
      for (const Tier tier : {Tier::device, Tier::host, Tier::nvme}) {
        Policy moved = at;
        for (const Shift& shift : shifts_)
          if (shift.group == group && shift.to == tier) moved = shifted(moved, shift, 1);
        if (tier == Tier::device || !same_placement(moved, placed.back())) placed.push_back(moved);
      }
    found = std::move(placed);
  }
  for (const auto& [from, to] : {std::pair{Tier::device, Tier::host}, {Tier::host, Tier::nvme}})
    for (const double part : {0.25, 0.5, 0.75}) {
      Policy split = all_on(policy, from);
      for (const Shift& shift : shifts_)
        if (shift.from == from && shift.to == to) split = shifted(split, shift, part);
      found.push_back(split);
    }
  return found;
}

bool same_placement(const Policy& a, const Policy& b) {
  const auto same = [](const TierFractions& f, const TierFractions& g) {
    return f.device == g.device && f.host == g.host && f.nvme == g.nvme;
  };
  return std::ranges::equal(a.fractions, b.fractions, same) &&
         a.streamed_updates == b.streamed_updates;
}

}  // namespace strata
