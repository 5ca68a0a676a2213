#include "strata/topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strata/core/bytes.hpp"
#include "strata/topology/cgroup.hpp"
#include "topology/hwloc_handle.hpp"
#include "topology/system_files.hpp"

namespace strata {
namespace {

// The cores this thread may run on.
HwlocBitmap affinity(hwloc_topology_t topology) {
  HwlocBitmap cores = make_bitmap();
  if (hwloc_get_cpubind(topology, cores.get(), HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_copy(cores.get(), hwloc_topology_get_allowed_cpuset(topology));
  }
  return cores;
}

// Takes the node's cores out of `left`: where memory of two kinds is local to the same cores (HBM
// beside DRAM), they count once, with the first.
NumaNode read_node(hwloc_topology_t topology, hwloc_obj_t object, hwloc_bitmap_t left) {
  NumaNode node{static_cast<int>(object->os_index), {}, object->attr->numanode.local_memory};
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_inside_cpuset_by_type(topology, object->cpuset, HWLOC_OBJ_PU,
                                                        core)) != nullptr;) {
    if (!hwloc_bitmap_isset(left, core->os_index)) continue;
    node.cores.push_back(static_cast<int>(core->os_index));
    hwloc_bitmap_clr(left, core->os_index);
  }
  return node;
}

std::vector<NumaNode> read_nodes(hwloc_topology_t topology, hwloc_const_bitmap_t usable) {
  std::vector<NumaNode> nodes;
  const HwlocBitmap left = make_bitmap();
  hwloc_bitmap_copy(left.get(), usable);
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    nodes.push_back(read_node(topology, object, left.get()));
  }
  return nodes;
}

void add_note(Topology& topology, const std::string& note) {
  if (!topology.note.empty()) topology.note += "; ";
  topology.note += note;
}

void limit_cores(Topology& topology, const CgroupLimits& limits) {
  if (!limits.cpus || *limits.cpus >= topology.usable_cores) return;
  add_note(topology,
           fmt::format("cgroup limits {} cores to {:.3g}", topology.usable_cores, *limits.cpus));
  topology.usable_cores = std::max(1, static_cast<int>(std::ceil(*limits.cpus)));
}

void limit_memory(Topology& topology, const CgroupLimits& limits) {
  if (limits.memory_available_bytes) {
    topology.available_memory_bytes =
        std::min(topology.available_memory_bytes, *limits.memory_available_bytes);
  }
  if (!limits.memory_bytes || *limits.memory_bytes >= topology.memory_bytes) return;
  add_note(topology,
           fmt::format("cgroup limits {} of memory to {}", format_bytes(topology.memory_bytes),
                       format_bytes(*limits.memory_bytes)));
  topology.memory_bytes = *limits.memory_bytes;
}

}  // namespace

Topology read_topology() {
  const HwlocTopology hwloc = load_hwloc();
  const HwlocBitmap usable = affinity(hwloc.get());
  Topology topology;
  topology.nodes = read_nodes(hwloc.get(), usable.get());
  topology.usable_cores = std::max(1, hwloc_bitmap_weight(usable.get()));
  const std::string meminfo = read_system_file("/proc/meminfo");
  topology.memory_bytes = kib_field_of(meminfo, "MemTotal:");
  topology.available_memory_bytes = kib_field_of(meminfo, "MemAvailable:");
  const CgroupLimits limits =
      read_cgroup_limits("/sys/fs/cgroup", read_system_file("/proc/self/cgroup"));
  limit_cores(topology, limits);
  limit_memory(topology, limits);
  return topology;
}

}  // namespace strata
