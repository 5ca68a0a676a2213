#pragma once
// What the kernel and its administrator let this process do: version, page sizes, limits, switches.
// Read from /proc and /sys; what they do not tell stays empty. A value.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strata/topology/cgroup.hpp"

namespace strata {

struct KernelVersion {
  int major = 0, minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};

struct ProcessLimit {
  std::optional<std::uint64_t> soft, hard;  // nothing: unlimited
};

struct HugePages {
  std::string mode;              // of transparent ones: "always", "madvise", "never"; empty: none
  std::uint64_t page_bytes = 0;  // of a transparent one
  std::uint64_t reserved = 0, reserved_free = 0;  // hugetlb pages
};

struct HostFacts {
  std::string kernel_release;  // "6.1.0-18-amd64"
  std::optional<KernelVersion> kernel;
  std::string cpu;  // "AMD EPYC 9654 96-Core Processor"
  std::uint64_t page_bytes = 4096;
  HugePages huge_pages;

  ProcessLimit locked_bytes, open_files;
  bool may_lock_any = false;             // CAP_IPC_LOCK: no limit holds
  bool is_filtered = false;              // by seccomp
  std::optional<int> io_uring_disabled;  // 0 for nobody, 1 but for a group, 2 for everybody

  std::uint64_t memory_bytes = 0, memory_available_bytes = 0;  // of the machine
  std::uint64_t swap_bytes = 0, swap_used_bytes = 0;
  CgroupLimits cgroup;

  std::vector<int> online_cores;   // of the machine
  std::vector<int> allowed_cores;  // of this process, by cpuset and affinity
  // Between NUMA nodes as the firmware tells them: 10 is home, 20 twice as far.
  std::map<int, std::map<int, int>> distances;
};

HostFacts read_host_facts();

}  // namespace strata
