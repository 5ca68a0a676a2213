#include "plan/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "strata/core/bytes.hpp"
#include "strata/plan/fit.hpp"
#include "strata/plan/tier_overflow.hpp"

namespace strata {
namespace {

std::string largest_contributors(const Plan& plan, std::size_t tier) {
  std::vector<const Usage*> users;
  for (const Usage& usage : plan.usage)
    if (usage.bytes[tier] > 0) users.push_back(&usage);
  std::ranges::sort(
      users, [&](const Usage* a, const Usage* b) { return a->bytes[tier] > b->bytes[tier]; });
  std::string text = "largest:";
  for (std::size_t i = 0; i < std::min<std::size_t>(4, users.size()); ++i)
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", users[i]->name,
                        format_bytes(users[i]->bytes[tier]));
  if (tier == static_cast<std::size_t>(Tier::host) && plan.limits.buffer_bytes > 0)
    text += fmt::format("; {} beside the tier, to load and to save in",
                        format_bytes(plan.limits.buffer_bytes));
  return text;
}

std::string advice(Tier tier) {
  switch (tier) {
    case Tier::device:
      return "lower the gpu fractions, fewer slots or a smaller "
             "micro-batch";
    case Tier::host:
      return "move more to gpu or nvme, or fewer state_slots and staging_slots";
    case Tier::nvme:
      return "free space below offload.nvme_paths, add a path, or lower the nvme fractions";
  }
  return {};
}

void refuse(const Plan& plan, Tier tier, const std::string& where, std::uint64_t need,
            std::uint64_t limit) {
  throw TierOverflow(tier, where, need, limit,
                     largest_contributors(plan, static_cast<std::size_t>(tier)), advice(tier),
                     TierOverflow::Limit::config);
}

}  // namespace

void check_budgets(const Plan& plan) {
  if (plan.tier_bytes[0] > plan.limits.device_bytes)
    refuse(plan, Tier::device, "tier gpu", plan.tier_bytes[0], plan.limits.device_bytes);
  if (host_bytes_taken(plan) > plan.limits.host_bytes)
    refuse(plan, Tier::host, "tier cpu", host_bytes_taken(plan), plan.limits.host_bytes);
  for (std::size_t drive = 0; drive < plan.drive_bytes.size(); ++drive)
    if (plan.drive_bytes[drive] > plan.limits.drive_bytes[drive])
      refuse(plan, Tier::nvme, fmt::format("tier nvme, path {}", drive), plan.drive_bytes[drive],
             plan.limits.drive_bytes[drive]);
}

}  // namespace strata
