#include "strata/memory/tier_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "strata/core/error.hpp"

namespace strata {

TierMemory::TierMemory(Device& device, std::uint64_t device_bytes, std::uint64_t host_bytes)
    : device_slab_(device.allocate(device_bytes)), host_slab_(device.allocate_pinned(host_bytes)) {}

std::uint64_t resident_bytes(const Slab& slab) {
  if (slab.bytes() == 0) return 0;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((slab.bytes() + page - 1) / page);
  check(::mincore(slab.data(), slab.bytes(), pages.data()), "count the resident pages of",
        "a slab");
  const auto resident = std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; });
  return static_cast<std::uint64_t>(resident) * page;
}

}  // namespace strata
