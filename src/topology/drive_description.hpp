#pragma once
// The part of DriveFacts that /proc and /sys tell.

#include <cstdint>
#include <optional>
#include <string>

#include "strata/topology/drive.hpp"
#include "system_files.hpp"

namespace strata {

// `path`: absolute, without links.
DriveFacts describe_drive(const std::string& path, std::optional<std::uint64_t> mount_id,
                          const SystemRoots& roots);

}  // namespace strata
