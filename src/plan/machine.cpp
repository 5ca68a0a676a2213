#include "strata/plan/machine.hpp"

#include <algorithm>
#include <cmath>

#include "strata/plan/simulate.hpp"

namespace strata {
namespace {

std::uint64_t portion(std::uint64_t bytes, double of) {
  return static_cast<std::uint64_t>(std::floor(static_cast<double>(bytes) * of));
}

// What is on a drive is read once and written once a step, as a rule.
double both_ways(const DriveProfile& drive) {
  const double read = drive.read_bytes_per_s, write = drive.write_bytes_per_s;
  return read > 0 && write > 0 ? 1 / (1 / read + 1 / write) : std::max(read, write);
}

}  // namespace

int MachineProfile::saving_drive() const {
  const auto slowest = std::ranges::min_element(drives, {}, &DriveProfile::new_file_rate);
  return slowest == drives.end() ? -1 : static_cast<int>(slowest - drives.begin());
}

TierLimits machine_limits(const MachineProfile& machine, double headroom) {
  const double own = 1 - headroom, shared = own / std::max(1, machine.ranks);
  TierLimits limits;
  limits.device_bytes = portion(machine.accelerator.memory_bytes, own);
  limits.host_bytes = portion(machine.host.memory_bytes, shared);
  for (const DriveProfile& drive : machine.drives) {
    limits.drive_bytes.push_back(portion(drive.bytes, shared));
    limits.drive_weights.push_back(both_ways(drive));
  }
  return limits;
}

}  // namespace strata
