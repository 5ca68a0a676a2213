// What a rank may have of each tier: of the machine it is on, and of one known by its numbers.

#include <sys/stat.h>

#include <algorithm>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/train/auto_plan.hpp"
#include "strata/train/durable_state.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {
namespace {

// Paths on one file system share its free bytes as they share the tiles.
// What the run itself left there it can take over.
std::uint64_t share_of_drive(std::size_t drive, const RunConfig& config) {
  const OffloadConfig& offload = config.offload;
  const auto file_system = [&](std::size_t d) {
    struct stat status = {};
    check(::stat(offload.nvme_paths[d].c_str(), &status), "look at", offload.nvme_paths[d]);
    return status.st_dev;
  };
  const auto weight = [&](std::size_t d) {
    return offload.nvme_weights.empty() ? 1.0 : offload.nvme_weights[d];
  };
  double sharers = 0;
  std::uint64_t available = available_drive_bytes(offload.nvme_paths[drive]);
  for (std::size_t d = 0; d < offload.nvme_paths.size(); ++d) {
    if (file_system(d) != file_system(drive)) continue;
    sharers += weight(d);
    if (offload.versioned) available += durable_bytes_in(config, offload.nvme_paths[d]);
  }
  return static_cast<std::uint64_t>(static_cast<double>(available) * (weight(drive) / sharers));
}

std::uint64_t usable(std::uint64_t available, int num_host_ranks) {
  return available - host_reserve_bytes(available, num_host_ranks);
}

// As device_limit() gives it: the profile's memory is without what one rank leaves to the driver.
std::uint64_t gpu_bytes(const RunConfig& config, std::uint64_t memory_bytes) {
  const std::uint64_t workspace = device_workspace_bytes(config.world);
  const auto beside = [](std::uint64_t bytes, std::uint64_t taken) {
    return bytes - std::min(bytes, taken);
  };
  const std::uint64_t more_reserve =
      device_reserve_bytes(memory_bytes, config.world) - device_reserve_bytes(memory_bytes, 1);
  const std::uint64_t there = beside(memory_bytes, workspace + more_reserve);
  if (!config.offload.gpu_limit) return there;
  return std::min(there, beside(*config.offload.gpu_limit, workspace));
}

}  // namespace

// As much as machine_limits() leaves of a machine. What processes need does not shrink with their
// machine, but on one of a few GiB the tiers come first.
std::uint64_t host_reserve_bytes(std::uint64_t available, int num_host_ranks) {
  constexpr std::uint64_t fixed = 256 * MiB, of_rank = 128 * MiB;
  const std::uint64_t wanted = fixed + of_rank * static_cast<std::uint64_t>(num_host_ranks);
  return std::min(available / 8, std::max(available / 20, wanted));
}

TierLimits rank_limits(const RunConfig& config, Purpose purpose, const Topology& topology,
                       int num_host_ranks, std::optional<std::uint64_t> device_bytes,
                       DrivesLimited drives) {
  if (purpose == Purpose::train) check_searched(config);
  const auto ranks = static_cast<std::uint64_t>(num_host_ranks);  // share all but their devices
  const std::uint64_t available = usable(topology.available_memory_bytes, num_host_ranks);
  TierLimits limits;
  limits.device_bytes = device_bytes.value_or(config.offload.gpu_limit.value_or(available));
  limits.host_bytes = config.offload.cpu_limit.value_or(available) / ranks;
  if (drives == DrivesLimited::in_use && !uses_drives(config, purpose)) return limits;
  for (const std::string& path : config.offload.nvme_paths) check_drive_directory(path);
  for (std::size_t drive = 0; drive < config.offload.nvme_paths.size(); ++drive)
    limits.drive_bytes.push_back(share_of_drive(drive, config) / ranks);
  limits.drive_weights = config.offload.nvme_weights;
  return limits;
}

TierLimits run_limits(const RunConfig& config, const MachineProfile& machine) {
  TierLimits limits = machine_limits(machine);
  // As a run places bytes, not as its drives would like them best.
  const std::vector<double>& weights = config.offload.nvme_weights;
  limits.drive_weights =
      weights.size() == limits.drive_bytes.size() ? weights : std::vector<double>{};
  const bool on_gpu = planned_device(config, machine) == DeviceKind::gpu;
  limits.device_bytes = on_gpu ? gpu_bytes(config, limits.device_bytes)
                               : std::min(limits.device_bytes,
                                          config.offload.gpu_limit.value_or(limits.device_bytes));
  const std::uint64_t host = usable(machine.host.memory_bytes, machine.ranks);
  limits.host_bytes = std::min(host, config.offload.cpu_limit.value_or(host)) /
                      static_cast<std::uint64_t>(machine.ranks);
  return limits;
}

}  // namespace strata
