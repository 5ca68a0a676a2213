#include <fmt/format.h>

#include <algorithm>

#include "plan/verify_order.hpp"
#include "plan/verify_values.hpp"
#include "strata/plan/plan.hpp"

namespace strata {
namespace {

void complain(std::vector<Violation>& found, std::string what) {
  if (found.size() < 20) found.push_back({std::move(what)});
}

std::uint64_t space_bytes(const Plan& plan, const Region& region) {
  if (region.tier != Tier::nvme) return plan.tier_bytes[static_cast<std::size_t>(region.tier)];
  return region.drive < plan.drive_bytes.size() ? plan.drive_bytes[region.drive] : 0;
}

void check_bounds(const Plan& plan, const Region& region, const std::string& whose,
                  std::vector<Violation>& found) {
  if (region.end() > space_bytes(plan, region) || region.end() < region.offset)
    complain(found, fmt::format("{} lies outside of tier {}: [{}, {})", whose,
                                tier_name(region.tier), region.offset, region.end()));
}

void check_tiers(const Plan& plan, std::vector<Violation>& found) {
  if (plan.tier_bytes[0] > plan.limits.device_bytes) complain(found, "tier gpu exceeds its limit");
  if (plan.tier_bytes[1] > plan.limits.host_bytes) complain(found, "tier cpu exceeds its limit");
  for (std::size_t drive = 0; drive < plan.drive_bytes.size(); ++drive)
    if (plan.drive_bytes[drive] > plan.limits.drive_bytes[drive])
      complain(found, fmt::format("drive {} exceeds its limit", drive));
}

// Homes of model state and slots of pools may not share bytes; what forward keeps for backward
// shares homes by design.
void check_homes(const Program& program, const Plan& plan, std::vector<Violation>& found) {
  std::vector<std::pair<Region, std::string>> fixed;
  for (const Shard& shard : program.shards) {
    for (const Region& home : plan.homes[shard.id.index()]) {
      check_bounds(plan, home, fmt::format("the home of '{}'", shard.name), found);
      if (shard.role != Role::activation && shard.role != Role::saved)
        fixed.emplace_back(home, shard.name);
    }
  }
  for (const SlotPool& pool : plan.pools)
    fixed.emplace_back(Region{pool.tier, 0, pool.offset,
                              pool.slot_bytes * static_cast<std::uint64_t>(pool.num_slots)},
                       pool.name);
  if (plan.transfer.bytes > 0) fixed.emplace_back(plan.transfer, "load and save");
  std::ranges::sort(fixed, [](const auto& a, const auto& b) {
    return std::tuple(a.first.tier, a.first.drive, a.first.offset) <
           std::tuple(b.first.tier, b.first.drive, b.first.offset);
  });
  for (std::size_t i = 1; i < fixed.size(); ++i)
    if (fixed[i - 1].first.overlaps(fixed[i].first))
      complain(found, fmt::format("'{}' and '{}' overlap in tier {}", fixed[i - 1].second,
                                  fixed[i].second, tier_name(fixed[i].first.tier)));
}

void check_lanes(const Schedule& schedule, std::vector<Violation>& found) {
  std::vector<int> seen(schedule.ops.size(), 0);
  for (std::size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    OpId last;
    for (OpId id : schedule.lanes[lane]) {
      const Op& op = schedule.ops[id.index()];
      if (static_cast<std::size_t>(op.lane) != lane || !(last < id))
        complain(found, fmt::format("op {} is misplaced on lane {}", id.value, lane));
      ++seen[id.index()];
      last = id;
    }
  }
  if (!std::ranges::all_of(seen, [](int times) { return times == 1; }))
    complain(found, "lanes do not hold each op once");
}

}  // namespace

std::vector<Violation> verify(const Program& program, const Plan& plan) {
  std::vector<Violation> found;
  check_tiers(plan, found);
  check_homes(program, plan, found);
  for (const Schedule& schedule : plan.schedules) {
    check_lanes(schedule, found);
    for (const Op& op : schedule.ops)
      for (const Operand& operand : op.operands)
        check_bounds(plan, operand.region, fmt::format("an operand of op {}", op.id.value), found);
    if (!found.empty()) return found;
    ValueReplay(program, plan, schedule, found).run(3);
    verify_order(program, plan, schedule, found);
  }
  return found;
}

}  // namespace strata
