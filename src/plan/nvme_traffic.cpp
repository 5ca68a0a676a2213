#include <numeric>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/plan.hpp"

namespace strata {
namespace {

std::uint64_t sum(const std::vector<std::uint64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

}  // namespace

std::uint64_t NvmeTraffic::read_bytes() const { return sum(drive_read_bytes); }
std::uint64_t NvmeTraffic::written_bytes() const { return sum(drive_written_bytes); }

NvmeTraffic nvme_traffic(const Plan& plan, std::string_view schedule) {
  const Schedule* ops = plan.schedule(schedule);
  if (ops == nullptr) throw ConfigError("the plan has no schedule '" + std::string(schedule) + "'");
  NvmeTraffic traffic;
  traffic.drive_read_bytes.resize(plan.drive_bytes.size());
  traffic.drive_written_bytes.resize(plan.drive_bytes.size());
  for (const Op& op : ops->ops) {
    if (op.kind != OpKind::read && op.kind != OpKind::write) continue;
    const bool reads = op.kind == OpKind::read;
    const Region& disk = op.operands[reads ? 0 : 1].region;
    auto& drives = reads ? traffic.drive_read_bytes : traffic.drive_written_bytes;
    drives.at(disk.drive) += link_bytes(op, plan.limits.io_alignment);
  }
  return traffic;
}

}  // namespace strata
