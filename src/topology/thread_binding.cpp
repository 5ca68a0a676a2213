#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "strata/core/error.hpp"
#include "strata/topology/binding.hpp"
#include "topology/hwloc_handle.hpp"

namespace strata {
namespace {

std::string bind(hwloc_topology_t topology, std::span<const int> cores) {
  const HwlocBitmap set = make_bitmap();
  for (const int core : cores) hwloc_bitmap_set(set.get(), static_cast<unsigned>(core));
  if (hwloc_set_cpubind(topology, set.get(), HWLOC_CPUBIND_THREAD) == 0) return "";
  return fmt::format("the thread cannot be bound to cores {}: {}", format_cores(cores),
                     std::generic_category().message(errno));
}

// "4" or "0-3"
std::string format_run(int first, int last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

}  // namespace

std::string format_cores(std::span<const int> cores) {
  std::vector<int> sorted(cores.begin(), cores.end());
  std::ranges::sort(sorted);
  std::string text;
  for (std::size_t first = 0, last = 0; first < sorted.size(); first = ++last) {
    while (last + 1 < sorted.size() && sorted[last + 1] <= sorted[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += format_run(sorted[first], sorted[last]);
  }
  return text;
}

std::string bind_current_thread(std::span<const int> cores) {
  if (cores.empty()) return "a thread cannot be bound to no core";
  for (const int core : cores) {
    if (core < 0) return fmt::format("no core has the number {}", core);
  }
  try {
    return bind(shared_hwloc(), cores);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace strata
