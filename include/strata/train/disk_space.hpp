#pragma once
// What a run writes to disks, added up per file system before it begins: tiles of the NVMe tier,
// checkpoints and the export may share one, and each would be found to fit alone.
// Thread contract: pure but for disk_of().

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "strata/train/planned_run.hpp"

namespace strata {

struct DiskDemand {
  std::string what;  // "a checkpoint"
  std::string directory;
  std::uint64_t bytes = 0;
  std::string advice = {};  // what asks for less; empty: nothing particular
};

struct Disk {
  std::uint64_t id = 0;  // of the file system
  std::uint64_t free_bytes = 0;
  std::uint64_t reclaimable_bytes = 0;  // tiles that killed runs left in the directory
};
// Of a directory, or of its nearest parent that exists.
Disk disk_of(const std::string& directory);
using DiskLookup = std::function<Disk(const std::string& directory)>;

struct HostShare {
  int num_ranks = 1;              // of this host, whose tiles lie on its drives
  bool writes_checkpoint = true;  // even if nobody stops the run
  std::filesystem::path export_target;
  // Of a run that goes on from durable stores: why not in them, but with new ones beside them.
  std::string why_not_in_place = {};
};
// Of the host that writes checkpoints and the export. `run`: the largest of its ranks.
std::vector<DiskDemand> disk_demands(const RunConfig& config, const PlannedRun& run,
                                     const HostShare& share);

// Throws ConfigError when a file system cannot hold what these come to on it.
void check_disk_space(std::span<const DiskDemand> demands, const DiskLookup& lookup = disk_of);
// Of the checkpoints that save_total_limit keeps, beside all else: a warning when they will not
// fit; empty when they do, or no limit is set.
std::string retention_warning(const RunConfig& config, std::span<const DiskDemand> demands,
                              const DiskLookup& lookup = disk_of);

}  // namespace strata
