#pragma once
// TierMemory is the memory of the device and host tiers, reserved when a Plan is loaded. Addresses
// never change. It owns the slabs; what it hands out are views. NVMe bytes belong to the ShardStore.
// Thread contract: constructed by one thread; address() from any.

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/device/device.hpp"

namespace strata {

class TierMemory {
 public:
  // Throws OutOfMemory when the device or the host cannot give that much.
  TierMemory(Device& device, std::uint64_t device_bytes, std::uint64_t host_bytes);

  std::byte* device_address(std::uint64_t offset) const { return device_slab_.data() + offset; }
  std::byte* host_address(std::uint64_t offset) const { return host_slab_.data() + offset; }
  const Slab& device_slab() const { return device_slab_; }
  const Slab& host_slab() const { return host_slab_; }

 private:
  Slab device_slab_;
  Slab host_slab_;
};

// Bytes of `slab` that are backed by memory now (mincore), rounded to pages: what a run really
// touched.
std::uint64_t resident_bytes(const Slab& slab);

}  // namespace strata
