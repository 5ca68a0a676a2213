#include "plan/verify_extents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <tuple>

#include "plan/saved_state.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

bool precedes(const Region& a, const Region& b) {
  return std::tuple(a.tier, a.drive, a.offset) < std::tuple(b.tier, b.drive, b.offset);
}

// Regions of one use that may share bytes, as one region where they touch.
std::vector<Region> united(std::vector<Region> regions) {
  std::ranges::sort(regions, precedes);
  std::vector<Region> whole;
  for (const Region& region : regions) {
    const bool apart = whole.empty() || whole.back().tier != region.tier ||
                       whole.back().drive != region.drive || whole.back().end() < region.offset;
    if (apart)
      whole.push_back(region);
    else
      whole.back().bytes = std::max(whole.back().end(), region.end()) - whole.back().offset;
  }
  return whole;
}

class ExtentCheck {
 public:
  ExtentCheck(const Program& program, const Plan& plan, std::vector<Violation>& found)
      : program_(program), plan_(plan), found_(found) {}

  void run() {
    if (!check_tiers()) return;
    check_homes();
    check_pools();
    check_transfer();
    check_save_buffers();
    check_operands();
    if (!found_.empty()) return;
    check_overlaps();
  }

 private:
  // What nothing else may overlap.
  struct Extent {
    Region region;
    std::string name;
  };
  // Fixed regions of one use: many ops, and more than one schedule, share them.
  enum Fixed : std::size_t { scratch, partials, scalars, sums, metrics, num_fixed };

  bool check_tiers() {
    if (plan_.limits.drive_bytes.size() != plan_.drive_bytes.size()) {
      complain(fmt::format("has {} drives and limits for {}", plan_.drive_bytes.size(),
                           plan_.limits.drive_bytes.size()));
      return false;
    }
    if (plan_.tier_bytes[0] > plan_.limits.device_bytes) complain("tier gpu exceeds its limit");
    if (plan_.tier_bytes[1] + plan_.limits.buffer_bytes > plan_.limits.host_bytes)
      complain("tier cpu exceeds its limit");
    for (std::size_t drive = 0; drive < plan_.drive_bytes.size(); ++drive)
      if (plan_.drive_bytes[drive] > plan_.limits.drive_bytes[drive])
        complain(fmt::format("drive {} exceeds its limit", drive));
    const auto& drives = plan_.drive_bytes;
    if (plan_.tier_bytes[2] != std::accumulate(drives.begin(), drives.end(), std::uint64_t{0}))
      complain("tier nvme is not the sum of its drives");
    return true;
  }

  void check_homes() {
    if (plan_.homes.size() != program_.shards.size())
      return complain(
          fmt::format("has homes for {} shards of {}", plan_.homes.size(), program_.shards.size()));
    for (const Shard& shard : program_.shards) check_homes_of(shard);
  }

  void check_homes_of(const Shard& shard) {
    const auto& homes = plan_.homes[shard.id.index()];
    const auto tiles = static_cast<std::size_t>(program_.num_tiles(shard.id));
    const bool right = is_model_state(shard.role) ? homes.size() == tiles
                       : is_kept(shard.role)      ? homes.size() <= 1
                                                  : homes.empty();
    if (!right)
      return complain(
          fmt::format("'{}' has {} homes for {} tiles", shard.name, homes.size(), tiles));
    for (std::size_t tile = 0; tile < homes.size(); ++tile) {
      const std::string name = fmt::format("the home of '{}' tile {}", shard.name, tile);
      const std::int64_t bytes = program_.tile_bytes(shard.id, static_cast<int>(tile));
      if (homes[tile].bytes != static_cast<std::uint64_t>(bytes))
        complain(fmt::format("{} has {} bytes of {}", name, homes[tile].bytes, bytes));
      const Region whole = all_places(shard.role, homes[tile]);
      check_bounds(whole, name);
      if (homes[tile].tier == Tier::nvme && homes[tile].offset % io_alignment() != 0)
        complain(fmt::format("{} is not aligned for direct I/O", name));
      if (is_model_state(shard.role))
        extents_.push_back({whole, name});
      else
        kept_.push_back(padded(homes[tile]));
    }
  }

  // Direct I/O moves whole pages.
  Region padded(Region home) const {
    if (home.tier == Tier::nvme) home.bytes = align_up(home.bytes, io_alignment());
    return home;
  }
  // A versioned store has the second place of a tile behind the first.
  Region all_places(Role role, const Region& home) const {
    Region whole = padded(home);
    if (home.tier == Tier::nvme && is_versioned(plan_.policy, role)) whole.bytes *= 2;
    return whole;
  }
  std::uint64_t io_alignment() const {
    return std::max<std::uint64_t>(plan_.limits.io_alignment, 1);
  }

  void check_pools() {
    for (const SlotPool& pool : plan_.pools) {
      const Region slots{pool.tier, 0, pool.offset,
                         pool.slot_bytes * static_cast<std::uint64_t>(pool.num_slots)};
      if (pool.num_slots < 1 || pool.slot_bytes == 0 ||
          slots.bytes / pool.slot_bytes != static_cast<std::uint64_t>(pool.num_slots))
        complain(fmt::format("'{}' are {} slots of {} bytes", pool.name, pool.num_slots,
                             pool.slot_bytes));
      check_bounds(slots, fmt::format("'{}'", pool.name));
      extents_.push_back({slots, fmt::format("'{}'", pool.name)});
    }
  }

  void check_transfer() {
    std::uint64_t most = 0;
    for (const Shard& shard : program_.shards)
      if (is_model_state(shard.role))
        most = std::max(most, static_cast<std::uint64_t>(program_.tile_bytes(shard.id, 0)));
    if (plan_.transfer.bytes < most || (most > 0 && plan_.transfer.tier != Tier::host))
      complain(fmt::format("loads and saves through {} bytes of tier {}: a tile has {}",
                           plan_.transfer.bytes, tier_name(plan_.transfer.tier), most));
    if (plan_.transfer.bytes == 0) return;
    check_bounds(plan_.transfer, "what loads and saves");
    extents_.push_back({plan_.transfer, "what loads and saves"});
  }

  void check_save_buffers() {
    const Region& buffers = plan_.save_buffers;
    const std::uint64_t least =
        plan_.schedule(saving_schedule) == nullptr ? 0 : save_buffers_bytes(program_);
    if (buffers.bytes < least || (least > 0 && buffers.tier != Tier::host))
      complain(fmt::format("saves through {} bytes of tier {}: it takes {}", buffers.bytes,
                           tier_name(buffers.tier), least));
    if (buffers.bytes == 0) return;
    check_bounds(buffers, "what saves in the background");
    extents_.push_back({buffers, "what saves in the background"});
  }

  void check_operands() {
    for (const Schedule& schedule : plan_.schedules)
      for (const Op& op : schedule.ops)
        for (const Operand& operand : op.operands) {
          if (!lies_inside(operand.region))
            check_bounds(operand.region, fmt::format("an operand of op {}", op.id.value));
          note_fixed(operand);
        }
  }

  void note_fixed(const Operand& operand) {
    const TileRef& what = operand.what;
    const auto note = [&](Fixed use) { fixed_[use].push_back(operand.region); };
    if (what.content == Content::scratch) note(scratch);
    if (what.content == Content::partials) note(partials);
    if (what.content == Content::scalars) note(scalars);
    if (what.content == Content::rank_sums) note(sums);
    if (what.content == Content::rank_metrics) note(metrics);
    if (what.content == Content::value && what.shard.valid() &&
        what.shard.index() < program_.shards.size() &&
        program_.shard(what.shard).role == Role::metric)
      note(metrics);
  }

  void check_overlaps() {
    constexpr std::array<const char*, num_fixed> names = {"scratch", "the norm's partial sums",
                                                          "the norm's scalars", "the ranks' sums",
                                                          "the metrics"};
    for (const Region& region : united(kept_)) extents_.push_back({region, "what forward keeps"});
    for (std::size_t use = 0; use < num_fixed; ++use)
      for (const Region& region : united(fixed_[use])) extents_.push_back({region, names[use]});
    std::erase_if(extents_, [](const Extent& extent) { return extent.region.bytes == 0; });
    std::ranges::sort(extents_, precedes, &Extent::region);
    for (std::size_t i = 1; i < extents_.size(); ++i)
      if (extents_[i - 1].region.overlaps(extents_[i].region))
        complain(fmt::format("{} and {} overlap in tier {}", extents_[i - 1].name, extents_[i].name,
                             tier_name(extents_[i].region.tier)));
  }

  // --- Bounds

  std::uint64_t space_bytes(const Region& region) const {
    if (region.tier > Tier::nvme) return 0;
    if (region.tier != Tier::nvme)
      return region.drive == 0 ? plan_.tier_bytes[static_cast<std::size_t>(region.tier)] : 0;
    return region.drive < plan_.drive_bytes.size() ? plan_.drive_bytes[region.drive] : 0;
  }

  bool lies_inside(const Region& region) const {
    return region.bytes > 0 && region.end() > region.offset && region.end() <= space_bytes(region);
  }

  void check_bounds(const Region& region, const std::string& whose) {
    if (lies_inside(region)) return;
    complain(fmt::format("{} lies outside of tier {}: [{}, {})", whose, tier_name(region.tier),
                         region.offset, region.end()));
  }

  void complain(std::string what) {
    if (found_.size() < 20) found_.push_back({std::move(what)});
  }

  const Program& program_;
  const Plan& plan_;
  std::vector<Violation>& found_;
  std::vector<Extent> extents_;
  std::vector<Region> kept_;
  std::array<std::vector<Region>, num_fixed> fixed_;
};

}  // namespace

void verify_extents(const Program& program, const Plan& plan, std::vector<Violation>& found) {
  ExtentCheck(program, plan, found).run();
}

}  // namespace strata
