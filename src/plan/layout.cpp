#include "plan/layout.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plan/budget.hpp"
#include "plan/memory_alignment.hpp"
#include "plan/saved_state.hpp"
#include "plan/spread.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr Role tiled_roles[] = {Role::weight, Role::gradient, Role::master, Role::moment1,
                                Role::moment2};
constexpr Role kept_roles[] = {Role::activation, Role::saved};

std::string_view purpose_name(SlotPurpose purpose) {
  switch (purpose) {
    case SlotPurpose::device_weight:
      return "weight slots";
    case SlotPurpose::device_contribution:
      return "gradient slots";
    case SlotPurpose::device_activation:
      return "activation slots";
    case SlotPurpose::device_saved:
      return "saved slots";
    case SlotPurpose::device_activation_gradient:
      return "activation gradients";
    case SlotPurpose::device_input:
      return "inputs";
    case SlotPurpose::device_gradient_tile:
      return "gradient tiles on the device";
    case SlotPurpose::device_weight_tile:
      return "weight tiles on the device";
    case SlotPurpose::device_master_tile:
      return "master tiles on the device";
    case SlotPurpose::device_moment1_tile:
      return "moment1 tiles on the device";
    case SlotPurpose::device_moment2_tile:
      return "moment2 tiles on the device";
    case SlotPurpose::device_reduced:
      return "reduced gradient slots";
    case SlotPurpose::device_new_weight:
      return "updated weight slots";
    case SlotPurpose::host_weight:
      return "weight staging";
    case SlotPurpose::host_new_weight:
      return "updated weight staging";
    case SlotPurpose::host_gradient:
      return "gradient staging";
    case SlotPurpose::host_update_gradient:
      return "update gradient staging";
    case SlotPurpose::host_master:
      return "master staging";
    case SlotPurpose::host_moment1:
      return "moment1 staging";
    case SlotPurpose::host_moment2:
      return "moment2 staging";
    case SlotPurpose::host_contribution:
      return "contribution staging";
    case SlotPurpose::host_activation:
      return "activation staging";
    case SlotPurpose::host_saved:
      return "saved staging";
    case SlotPurpose::host_checkpoint:
      return "checkpoint staging";
  }
  return "?";
}

Tier purpose_tier(SlotPurpose purpose) {
  return purpose < SlotPurpose::host_weight ? Tier::device : Tier::host;
}

// From each shard's first use in a sequence to its last, as positions in it.
struct Lifetimes {
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  Lifetimes(const Program& program, const Sequence& sequence)
      : first(program.shards.size(), never), last(program.shards.size(), 0) {
    for (std::size_t at = 0; at < sequence.segments.size(); ++at)
      for (const Use& use : program.segment(sequence.segments[at]).uses) {
        first[use.shard.index()] = std::min(first[use.shard.index()], at);
        last[use.shard.index()] = at;
      }
  }

  std::vector<std::size_t> first, last;
};

}  // namespace

// --- SlotRing

Region SlotRing::slot(std::size_t index, std::uint64_t bytes) const {
  ensure(bytes <= pool_.slot_bytes);
  return {pool_.tier, 0, pool_.offset + index * pool_.slot_bytes, bytes};
}

Region SlotRing::take(TileRef what, std::uint64_t bytes, std::span<const Region> in_use) {
  const auto is_in_use = [&](std::size_t index) {
    const Region whole = slot(index, pool_.slot_bytes);
    return std::ranges::any_of(in_use, [&](const Region& r) { return r.overlaps(whole); });
  };
  std::size_t index = next_;
  for (std::size_t tries = 1; is_in_use(index); ++tries) {
    ensure(tries < holds_.size());
    index = (index + 1) % holds_.size();
  }
  next_ = (index + 1) % holds_.size();
  holds_[index] = what;
  return slot(index, bytes);
}

Region SlotRing::find(TileRef what, std::uint64_t bytes) const {
  const auto found = std::ranges::find(holds_, what);
  if (found == holds_.end()) return {pool_.tier, 0, 0, 0};
  return slot(static_cast<std::size_t>(found - holds_.begin()), bytes);
}

void SlotRing::forget(ShardId shard) {
  for (TileRef& held : holds_)
    if (held.shard == shard) held = {};
}

void SlotRing::reset() {
  next_ = 0;
  std::ranges::fill(holds_, TileRef{});
}

// --- Layout

Layout::Layout(const Program& program, const TierLimits& limits, const Policy& policy)
    : program_(program),
      limits_(limits),
      policy_(policy),
      tiers_(program.shards.size()),
      homes_(program.shards.size()),
      drive_end_(limits.drive_bytes.size(), 0) {
  measure_tiles();
  const auto fractions = [&](Role role) {
    return policy.fractions[static_cast<std::size_t>(role)];
  };
  for (Role role : tiled_roles) assign_role(role, fractions(role));
  for (Role role : kept_roles) assign_kept(role, fractions(role));
}

void Layout::measure_tiles() {
  for (const Shard& shard : program_.shards) {
    std::int64_t& most = most_tile_elements_[static_cast<std::size_t>(shard.role)];
    most = std::max(most, program_.tile_count(shard.id, 0));
  }
}

bool Layout::all_on(ShardId shard, Tier tier) const {
  return std::ranges::all_of(tiers_[shard.index()], [&](Tier t) { return t == tier; });
}

Region Layout::whole_home(ShardId shard) const {
  const auto& tiles = homes_[shard.index()];
  ensure(!tiles.empty() && tiles.front().tier != Tier::nvme);
  const Region whole{tiles.front().tier, 0, tiles.front().offset,
                     static_cast<std::uint64_t>(program_.shard(shard).bytes())};
  ensure(tiles.back().end() == whole.end());
  return whole;
}

void Layout::assign_role(Role role, const TierFractions& fractions) {
  Spread spread({fractions.device, fractions.host, fractions.nvme});
  for (const Shard& shard : program_.shards) {
    if (shard.role != role) continue;
    const int tiles = program_.num_tiles(shard.id);
    for (int tile = 0; tile < tiles; ++tile) {
      const auto bytes = static_cast<std::uint64_t>(program_.tile_bytes(shard.id, tile));
      tiers_[shard.id.index()].push_back(static_cast<Tier>(spread.next(bytes)));
    }
    place_tiles(shard.id);
  }
}

void Layout::place_tiles(ShardId shard) {
  const auto& tiers = tiers_[shard.index()];
  for (std::size_t tile = 0; tile < tiers.size(); ++tile) {
    const auto bytes =
        static_cast<std::uint64_t>(program_.tile_bytes(shard, static_cast<int>(tile)));
    const Role role = program_.shard(shard).role;
    homes_[shard.index()].push_back(allocate_home(role, tiers[tile], bytes));
    add_home_usage(role, tiers[tile], bytes);
  }
}

// What a store keeps in two places has both on one drive, the second behind the first.
Region Layout::allocate_home(Role role, Tier tier, std::uint64_t bytes) {
  if (tier != Tier::nvme || !is_versioned(policy_, role)) return allocate(tier, bytes);
  add_usage("second version of the state", tier, bytes);
  Region home = allocate(tier, 2 * align_up(bytes, limits_.io_alignment));
  home.bytes = bytes;
  return home;
}

// What forward keeps for backward needs a home only when something later than the next segment
// reads it; its block decides the tier, and memory is shared among shards that are not live
// together.
void Layout::assign_kept(Role role, const TierFractions& fractions) {
  Spread spread({fractions.device, fractions.host, fractions.nvme});
  std::map<int, Tier> tier_of_block;
  for (const Shard& shard : program_.shards) {
    if (shard.role != role || tier_of_block.contains(shard.block)) continue;
    tier_of_block[shard.block] =
        static_cast<Tier>(spread.next(static_cast<std::uint64_t>(shard.bytes())));
  }
  for (const Sequence& sequence : program_.sequences) place_kept(role, sequence, tier_of_block);
}

void Layout::place_kept(Role role, const Sequence& sequence,
                        const std::map<int, Tier>& tier_of_block) {
  const auto [first, last] = Lifetimes(program_, sequence);
  std::map<std::pair<Tier, std::uint64_t>, std::vector<Region>> free;
  for (std::size_t at = 0; at < sequence.segments.size(); ++at) {
    for (const Use& use : program_.segment(sequence.segments[at]).uses) {
      const Shard& shard = program_.shard(use.shard);
      if (shard.role != role || last[shard.id.index()] <= first[shard.id.index()] + 1) continue;
      const Tier tier = tier_of_block.at(shard.block);
      const auto bytes = static_cast<std::uint64_t>(shard.bytes());
      auto& pool = free[{tier, bytes}];
      if (at == first[shard.id.index()] && homes_[shard.id.index()].empty()) {
        if (pool.empty()) {
          pool.push_back(allocate(tier, bytes));
          add_home_usage(role, tier, bytes);
        }
        tiers_[shard.id.index()] = {tier};
        homes_[shard.id.index()] = {pool.back()};
        pool.pop_back();
      } else if (at == last[shard.id.index()]) {
        pool.push_back(homes_[shard.id.index()].front());
      }
    }
  }
}

Region Layout::allocate(Tier tier, std::uint64_t bytes) {
  if (tier == Tier::nvme) {
    const std::uint8_t drive = pick_drive(bytes);
    const Region region{tier, drive, drive_end_[drive], bytes};
    drive_end_[drive] += align_up(bytes, limits_.io_alignment);
    return region;
  }
  std::uint64_t& end = tier == Tier::device ? device_end_ : host_end_;
  const Region region{tier, 0, end, bytes};
  end += memory_aligned(bytes);
  return region;
}

// The drive that is furthest below its share of the bytes, shares in proportion to bandwidth.
std::uint8_t Layout::pick_drive(std::uint64_t bytes) {
  if (drive_end_.empty())
    throw ConfigError("the plan needs NVMe, but offload.nvme_paths names no directory");
  std::size_t best = 0;
  double best_load = std::numeric_limits<double>::infinity();
  for (std::size_t drive = 0; drive < drive_end_.size(); ++drive) {
    const double weight = limits_.drive_weights.empty() ? 1.0 : limits_.drive_weights[drive];
    const double load = static_cast<double>(drive_end_[drive] + bytes) / weight;
    if (load < best_load) best = drive, best_load = load;
  }
  return static_cast<std::uint8_t>(best);
}

SlotRing& Layout::ring(SlotPurpose purpose, std::uint64_t bytes) {
  const std::uint64_t slot_bytes = memory_aligned(bytes);
  const auto key = std::make_pair(purpose, slot_bytes);
  if (const auto found = rings_.find(key); found != rings_.end()) return found->second;
  const int count = num_slots(purpose, bytes);
  const Tier tier = purpose_tier(purpose);
  const Region region = allocate(tier, slot_bytes * static_cast<std::uint64_t>(count));
  const std::string name(purpose_name(purpose));
  add_usage(name, tier, region.bytes);
  return rings_.emplace(key, SlotRing({name, tier, region.offset, slot_bytes, count}))
      .first->second;
}

int Layout::num_slots(SlotPurpose purpose, std::uint64_t bytes) const {
  switch (purpose) {
    case SlotPurpose::device_weight:
    case SlotPurpose::device_new_weight:
      return whole_block_slots(policy_.weight_slots, Role::weight, purpose, bytes);
    case SlotPurpose::device_contribution:
    case SlotPurpose::device_reduced:
      return whole_block_slots(policy_.gradient_slots, Role::gradient, purpose, bytes);
    case SlotPurpose::device_activation:
    case SlotPurpose::device_saved:
    case SlotPurpose::host_activation:
    case SlotPurpose::host_saved:
      return policy_.activation_slots;
    case SlotPurpose::device_activation_gradient:
      return std::max(2, most_live(Role::activation_gradient, bytes));
    case SlotPurpose::device_input:
      return most_live(Role::input, bytes) + 1;
    case SlotPurpose::device_gradient_tile:
    case SlotPurpose::device_weight_tile:
    case SlotPurpose::device_master_tile:
    case SlotPurpose::device_moment1_tile:
    case SlotPurpose::device_moment2_tile:
    case SlotPurpose::host_new_weight:
    case SlotPurpose::host_update_gradient:
    case SlotPurpose::host_master:
    case SlotPurpose::host_moment1:
    case SlotPurpose::host_moment2:
      return policy_.state_slots;
    case SlotPurpose::host_weight:
    case SlotPurpose::host_gradient:
    case SlotPurpose::host_contribution:
      return policy_.staging_slots;
    case SlotPurpose::host_checkpoint:
      return checkpoint_slots;
  }
  return 1;
}

// The most shards of a role and size class that are live at once. Gradients of activations have no
// home, as they live no longer than from one block to the next: their slots hold all of a group's
// micro-batches. So do inputs, with one more for the next group's first.
int Layout::most_live(Role role, std::uint64_t bytes) const {
  int most = 0;
  for (const Sequence& sequence : program_.sequences) {
    const Lifetimes lives(program_, sequence);
    std::vector<int> change(sequence.segments.size() + 1, 0);
    for (const Shard& shard : program_.shards) {
      const std::size_t index = shard.id.index();
      if (shard.role != role || lives.first[index] == Lifetimes::never ||
          memory_aligned(static_cast<std::uint64_t>(shard.bytes())) != memory_aligned(bytes))
        continue;
      ++change[lives.first[index]];
      --change[lives.last[index] + 1];
    }
    int live = 0;
    for (int c : change) most = std::max(most, live += c);
  }
  return most;
}

// What a slot holds of a block: all ranks' slices, or one.
std::uint64_t Layout::block_bytes(ShardId id, SlotPurpose purpose) const {
  const Shard& shard = program_.shard(id);
  const DType dtype = shard.role == Role::gradient ? program_.contribution_dtype : shard.dtype;
  const std::int64_t elements = purpose == SlotPurpose::device_reduced
                                    ? program_.slice_elements(id)
                                    : program_.whole_elements(id);
  return static_cast<std::uint64_t>(elements * dtype_bytes(dtype));
}

// Slots for whole blocks of one size class: no more than there are blocks, and no fewer than one
// segment needs at once (a tied head reads the embedding's weights beside its own).
int Layout::whole_block_slots(int wanted, Role role, SlotPurpose purpose,
                              std::uint64_t bytes) const {
  const auto in_class = [&](ShardId id) {
    return program_.shard(id).role == role &&
           memory_aligned(block_bytes(id, purpose)) == memory_aligned(bytes);
  };
  int blocks = 0, at_once = 1;
  for (const Shard& shard : program_.shards) blocks += in_class(shard.id);
  for (const Segment& segment : program_.segments) {
    if (!is_model_segment(segment.kind)) continue;
    at_once =
        std::max(at_once, static_cast<int>(std::ranges::count_if(
                              segment.uses, [&](const Use& u) { return in_class(u.shard); })));
  }
  return std::max(at_once, std::min(wanted, blocks));
}

void Layout::reset_rings() {
  for (auto& [key, ring] : rings_) ring.reset();
}

void Layout::forget(ShardId shard) {
  for (auto& [key, ring] : rings_) ring.forget(shard);
}

Region Layout::fixed(const std::string& name, Tier tier, std::uint64_t bytes) {
  if (const auto found = fixed_.find(name); found != fixed_.end()) return found->second;
  const Region region = allocate(tier, bytes);
  add_usage(name.substr(0, name.find('/')), tier, bytes);
  fixed_.emplace(name, region);
  return region;
}

void Layout::add_home_usage(Role role, Tier tier, std::uint64_t bytes) {
  auto found =
      std::ranges::find_if(usage_, [&](const Usage& u) { return u.is_home && u.role == role; });
  if (found == usage_.end())
    found = usage_.insert(usage_.end(), {std::string(role_name(role)), true, role, {}});
  found->bytes[static_cast<std::size_t>(tier)] += memory_aligned(bytes);
}

void Layout::add_usage(const std::string& name, Tier tier, std::uint64_t bytes) {
  auto found =
      std::ranges::find_if(usage_, [&](const Usage& u) { return !u.is_home && u.name == name; });
  if (found == usage_.end()) found = usage_.insert(usage_.end(), {name, false, Role::weight, {}});
  found->bytes[static_cast<std::size_t>(tier)] += memory_aligned(bytes);
}

// Loading and saving move one tile of model state at a time through these.
void Layout::reserve_transfer(Plan& plan) {
  std::uint64_t bytes = 0;
  for (const Shard& shard : program_.shards)
    if (has_home(shard.id) && !is_kept(shard.role))
      bytes = std::max(bytes, static_cast<std::uint64_t>(program_.tile_bytes(shard.id, 0)));
  if (bytes > 0) plan.transfer = fixed("load and save", Tier::host, memory_aligned(bytes));
}

void Layout::reserve_save_buffers(Plan& plan) {
  if (plan.schedule(saving_schedule) == nullptr) return;
  plan.save_buffers = fixed("checkpoint buffers", Tier::host, save_buffers_bytes(program_));
}

void Layout::finish(Plan& plan) {
  reserve_transfer(plan);
  reserve_save_buffers(plan);
  plan.homes = std::move(homes_);
  for (const auto& [key, ring] : rings_) plan.pools.push_back(ring.pool());
  plan.usage = std::move(usage_);
  plan.drive_bytes = drive_end_;
  std::uint64_t nvme = 0;
  for (std::uint64_t bytes : drive_end_) nvme += bytes;
  plan.tier_bytes = {device_end_, host_end_, nvme};
  plan.policy = policy_;
  plan.limits = limits_;
  check_budgets(plan);
}

}  // namespace strata
