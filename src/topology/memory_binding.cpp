#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "strata/core/error.hpp"
#include "strata/topology/binding.hpp"
#include "topology/hwloc_handle.hpp"

namespace strata {

std::string place_memory_on_node(std::span<std::byte> memory, int node) {
  if (node < 0) return fmt::format("no NUMA node has the number {}", node);
  try {
    const HwlocBitmap set = make_bitmap();
    hwloc_bitmap_only(set.get(), static_cast<unsigned>(node));
    // Without HWLOC_MEMBIND_STRICT it prefers the node, and does not end a run that it is too small
    // for.
    if (hwloc_set_area_membind(shared_hwloc(), memory.data(), memory.size(), set.get(),
                               HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) == 0)
      return "";
    return fmt::format("memory cannot be placed on NUMA node {}: {}", node,
                       std::generic_category().message(errno));
  } catch (const Error& error) {
    return error.what();
  }
}

std::function<void(std::span<std::byte>)> placer_on_node(int node) {
  if (node < 0) return {};
  return [node](std::span<std::byte> memory) { place_memory_on_node(memory, node); };
}

}  // namespace strata
