#include "strata/train/disk_space.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/durable_state.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr const char* checkpoint_demand_name = "a checkpoint";

// A run makes its folders: until then a parent tells.
std::string nearest_existing(const std::string& directory) {
  std::error_code ignored;
  fs::path path = fs::absolute(directory, ignored).lexically_normal();
  while (path.has_relative_path() && !fs::exists(path, ignored)) path = path.parent_path();
  return path.string();
}

// What is asked of one file system.
struct DiskSum {
  std::uint64_t available_bytes = 0;
  std::vector<DiskDemand> demands;

  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const DiskDemand& demand : demands) sum += demand.bytes;
    return sum;
  }
  bool fits() const { return bytes() <= available_bytes; }
};

std::vector<DiskSum> sums_of(std::span<const DiskDemand> demands, const DiskLookup& lookup) {
  std::map<std::uint64_t, DiskSum> sums;
  std::set<std::string> looked_at;
  for (const DiskDemand& demand : demands) {
    if (demand.bytes == 0) continue;
    const Disk disk = lookup(demand.directory);
    DiskSum& sum = sums[disk.id];
    if (sum.demands.empty()) sum.available_bytes = disk.free_bytes;
    if (looked_at.insert(demand.directory).second) sum.available_bytes += disk.reclaimable_bytes;
    sum.demands.push_back(demand);
  }
  std::vector<DiskSum> listed;
  for (auto& [id, sum] : sums) listed.push_back(std::move(sum));
  return listed;
}

std::string list_of(const std::vector<DiskDemand>& demands) {
  std::string text;
  for (const DiskDemand& demand : demands)
    text += fmt::format("{}{} for {} in {}", text.empty() ? "" : ", ", format_bytes(demand.bytes),
                        demand.what, demand.directory);
  return text;
}

bool has_checkpoint(const DiskSum& sum) {
  return std::ranges::find(sum.demands, checkpoint_demand_name, &DiskDemand::what) !=
         sum.demands.end();
}

std::string advice_of(const DiskSum& sum) {
  std::string text;
  for (const DiskDemand& demand : sum.demands)
    if (!demand.advice.empty() && !text.ends_with(demand.advice)) text += "; " + demand.advice;
  return text;
}

[[noreturn]] void refuse(const DiskSum& sum) {
  const bool shares = sum.demands.size() > 1;
  throw ConfigError(fmt::format(
      "too little room on the file system of {}: this run needs {}{}, and {} are free, {} too "
      "little: make room, or put output_dir, export_dir or offload.nvme_paths on another drive{}{}",
      sum.demands.front().directory,
      shares ? fmt::format("{} there in all, ", format_bytes(sum.bytes())) : "",
      list_of(sum.demands), format_bytes(sum.available_bytes),
      format_bytes(sum.bytes() - sum.available_bytes),
      has_checkpoint(sum) ? ", or set save_only_model or save_strategy: \"no\"" : "",
      advice_of(sum)));
}

// What is there of the run's own state is not asked for again where it goes on in place.
std::uint64_t bytes_to_take_over(const RunConfig& config, const HostShare& share,
                                 const std::string& path) {
  const bool stays = config.offload.versioned && share.why_not_in_place.empty();
  return stays ? durable_bytes_in(config, path) : 0;
}

// The old state goes only when the new one is whole.
std::string advice_on_tiles(const HostShare& share) {
  if (share.why_not_in_place.empty()) return "";
  return fmt::format(
      "the state that the run goes on from stays where it is until the new tiles hold it, because "
      "{}: a run that is as it was in this goes on in place, with no more room",
      share.why_not_in_place);
}

std::vector<DiskDemand> drive_demands(const RunConfig& config, const PlannedRun& run,
                                      const HostShare& share) {
  const int ranks = share.num_ranks;
  std::vector<DiskDemand> demands;
  for (std::size_t drive = 0; drive < run.plan.drive_bytes.size(); ++drive) {
    const std::string& path = config.offload.nvme_paths.at(drive);
    const std::uint64_t bytes = run.plan.drive_bytes[drive] * static_cast<std::uint64_t>(ranks);
    demands.push_back({ranks == 1 ? "tiles" : fmt::format("tiles of {} ranks", ranks), path,
                       bytes - std::min(bytes, bytes_to_take_over(config, share, path)),
                       advice_on_tiles(share)});
  }
  return demands;
}

bool is_drive_of(const std::vector<DiskDemand>& demands, const std::string& directory) {
  return std::ranges::find(demands, directory, &DiskDemand::directory) != demands.end();
}

}  // namespace

Disk disk_of(const std::string& directory) {
  const std::string there = nearest_existing(directory);
  struct stat facts = {};
  check(::stat(there.c_str(), &facts), "look at", there);
  const std::uint64_t available = available_drive_bytes(there);
  const std::uint64_t free = std::min(available, free_bytes(there));
  return {facts.st_dev, free, available - free};
}

std::vector<DiskDemand> disk_demands(const RunConfig& config, const PlannedRun& run,
                                     const HostShare& share) {
  std::vector<DiskDemand> demands = drive_demands(config, run, share);
  if (share.writes_checkpoint)
    demands.push_back(
        {checkpoint_demand_name, config.output_dir.string(), checkpoint_demand(config, run).bytes});
  demands.push_back({"the export", fs::absolute(share.export_target).parent_path().string(),
                     exported_bytes(config, run)});
  return demands;
}

void check_disk_space(std::span<const DiskDemand> demands, const DiskLookup& lookup) {
  for (const DiskSum& sum : sums_of(demands, lookup))
    if (!sum.fits()) refuse(sum);
}

std::string retention_warning(const RunConfig& config, std::span<const DiskDemand> demands,
                              const DiskLookup& lookup) {
  std::vector<DiskDemand> all(demands.begin(), demands.end());
  const auto one = std::ranges::find(all, checkpoint_demand_name, &DiskDemand::what);
  if (config.save_total_limit == 0 || one == all.end()) return "";
  const std::int64_t there =
      std::ssize(list_checkpoints(posix_file_system(), config.output_dir.string()));
  const std::int64_t to_come =
      checkpoints_kept(config) + 1 - std::min(there, checkpoints_kept(config));
  *one = {fmt::format("{} checkpoints", to_come), one->directory,
          one->bytes * static_cast<std::uint64_t>(to_come)};
  for (const DiskSum& sum : sums_of(all, lookup))
    if (!sum.fits() && is_drive_of(sum.demands, one->directory))
      return fmt::format(
          "with the {} checkpoints that save_total_limit keeps, and one more while it is written, "
          "the run takes {} more on the file system of {}, where {} are free: saves will fail, and "
          "those that stand be kept",
          checkpoints_kept(config), format_bytes(sum.bytes()), one->directory,
          format_bytes(sum.available_bytes));
  return "";
}

}  // namespace strata
