#pragma once
// The limits that control groups put on a process, version 1 or 2. Every group from the process's
// own up to the root may hold one; the tightest counts.

#include <cstdint>
#include <optional>
#include <string>

namespace strata {

struct CgroupLimits {
  std::optional<double> cpus;  // quota over period
  std::optional<std::uint64_t> memory_bytes;
  // What is left below the tightest memory limit, page cache that can be dropped included.
  std::optional<std::uint64_t> memory_available_bytes;
};

// `root`: where the groups are mounted ("/sys/fs/cgroup"). `membership`: the text of
// /proc/self/cgroup. Files that are missing or unreadable limit nothing.
CgroupLimits read_cgroup_limits(const std::string& root, const std::string& membership);

}  // namespace strata
