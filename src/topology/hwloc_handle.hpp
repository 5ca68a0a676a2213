#pragma once
// Owners of hwloc's objects.

#include <hwloc.h>

#include <memory>

namespace strata {

using HwlocTopology = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;
using HwlocBitmap = std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)>;

HwlocTopology load_hwloc();  // Throws Error.
// Loaded once: it takes milliseconds, and a run binds hundreds of threads. Never changed after.
hwloc_topology_t shared_hwloc();  // Throws Error.
inline HwlocBitmap make_bitmap() { return {hwloc_bitmap_alloc(), &hwloc_bitmap_free}; }

}  // namespace strata
