#include "strata/topology/topology.hpp"

#include <fmt/format.h>
#include <hwloc.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/cgroup.hpp"

namespace strata {
namespace {

using HwlocTopology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

HwlocTopology load_hwloc() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Error("hwloc cannot be started");
  HwlocTopology topology(raw, &hwloc_topology_destroy);
  check(hwloc_topology_load(raw), "read", "the machine's topology with hwloc");
  return topology;
}

// The cores this thread may run on.
Bitmap affinity(hwloc_topology_t topology) {
  Bitmap cores(hwloc_bitmap_alloc(), &hwloc_bitmap_free);
  if (hwloc_get_cpubind(topology, cores.get(), HWLOC_CPUBIND_THREAD) != 0) {
    hwloc_bitmap_copy(cores.get(), hwloc_topology_get_allowed_cpuset(topology));
  }
  return cores;
}

NumaNode read_node(hwloc_obj_t object, hwloc_const_bitmap_t usable) {
  NumaNode node{static_cast<int>(object->os_index), {}, object->attr->numanode.local_memory};
  for (int core = hwloc_bitmap_first(object->cpuset); core >= 0;
       core = hwloc_bitmap_next(object->cpuset, core)) {
    if (hwloc_bitmap_isset(usable, static_cast<unsigned>(core))) node.cores.push_back(core);
  }
  return node;
}

std::vector<NumaNode> read_nodes(hwloc_topology_t topology, hwloc_const_bitmap_t usable) {
  std::vector<NumaNode> nodes;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    nodes.push_back(read_node(object, usable));
  }
  return nodes;
}

// "MemAvailable:   24205036 kB"
std::uint64_t meminfo_bytes(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  for (std::uint64_t value = 0; file >> key >> value && std::getline(file, unit);) {
    if (key == name) return value * KiB;
  }
  return 0;
}

std::string read_membership() {
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
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
  const Bitmap usable = affinity(hwloc.get());
  Topology topology;
  topology.nodes = read_nodes(hwloc.get(), usable.get());
  topology.usable_cores = std::max(1, hwloc_bitmap_weight(usable.get()));
  topology.memory_bytes = meminfo_bytes("MemTotal:");
  topology.available_memory_bytes = meminfo_bytes("MemAvailable:");
  const CgroupLimits limits = read_cgroup_limits("/sys/fs/cgroup", read_membership());
  limit_cores(topology, limits);
  limit_memory(topology, limits);
  return topology;
}

}  // namespace strata
