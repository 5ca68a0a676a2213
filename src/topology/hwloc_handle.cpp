#include "topology/hwloc_handle.hpp"

#include "strata/core/error.hpp"

namespace strata {

HwlocTopology load_hwloc() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Error("hwloc cannot be started");
  HwlocTopology topology(raw, &hwloc_topology_destroy);
  check(hwloc_topology_load(raw), "read", "the machine's topology with hwloc");
  return topology;
}

hwloc_topology_t shared_hwloc() {
  static const HwlocTopology topology = load_hwloc();
  return topology.get();
}

}  // namespace strata
