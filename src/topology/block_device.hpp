#pragma once
// Block devices as /sys shows them: partition, disk, queue.

#include <filesystem>

#include "strata/topology/drive.hpp"
#include "mount_table.hpp"
#include "system_files.hpp"

namespace strata {

// The folder of the mount's device below /sys/devices; empty: it has none (overlay, network).
std::filesystem::path find_block_device(const Mount& mount, const SystemRoots& roots);

// Fills device, disk and all that follows from them.
void describe_block_device(DriveFacts& facts, const std::filesystem::path& device);

}  // namespace strata
