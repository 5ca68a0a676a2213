#pragma once
// The mounts that a process sees, as /proc/self/mountinfo lists them. Thread contract: pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace strata {

struct Mount {
  std::uint64_t id = 0;
  std::string device;  // "259:2"; "0:..." for file systems that have no block device of their own
  std::string mount_point, options, file_system;
  std::string source;  // "/dev/nvme0n1p2", "overlay", "server:/export"
};

// Lines that are none are left out.
std::vector<Mount> parse_mounts(const std::string& mountinfo);

// The mount that holds an absolute path: the one with this id (statx tells it), else the longest
// mount point above the path; of equals the last, which hides the others. nullptr: none does.
const Mount* find_mount(std::span<const Mount> mounts, const std::string& path,
                        std::optional<std::uint64_t> id);

}  // namespace strata
