#pragma once
// What this machine lets this process use: cores (cpuset, affinity and cgroup quota), NUMA nodes,
// memory (cgroup limit included) and file systems. Read once; a value.

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

struct NumaNode {
  int id = 0;
  // Usable ones, as the kernel numbers them, in the hardware's order: threads of one physical core
  // side by side, then those that share a cache.
  std::vector<int> cores;
  std::uint64_t memory_bytes = 0;
};

struct Topology {
  std::vector<NumaNode> nodes;
  int usable_cores = 1;            // min of affinity mask and cgroup quota (rounded up), at least 1
  std::uint64_t memory_bytes = 0;  // min of physical and cgroup limit
  std::uint64_t available_memory_bytes = 0;  // what could be allocated now
  std::string note;                          // "cgroup limits 8 cores to 2.5" when a limit bites
};

Topology read_topology();

struct FileSystemInfo {
  std::string type;  // "ext4", "tmpfs" ...
  bool in_memory = false;
  std::uint64_t free_bytes = 0, total_bytes = 0;
};
FileSystemInfo read_file_system(const std::string& directory);  // Throws SystemError.

}  // namespace strata
