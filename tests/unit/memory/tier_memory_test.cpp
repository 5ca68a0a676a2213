#include "strata/memory/tier_memory.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

TEST(TierMemory, ReservesBothTiersAtAddressesThatAddUp) {
  auto device = make_host_device({});
  const TierMemory memory(*device, 3 * MiB, 5 * MiB);
  EXPECT_EQ(memory.device_slab().bytes(), 3 * MiB);
  EXPECT_EQ(memory.host_slab().bytes(), 5 * MiB);
  EXPECT_EQ(memory.device_address(4096), memory.device_slab().data() + 4096);
  EXPECT_EQ(memory.host_address(MiB), memory.host_slab().data() + MiB);
  std::memset(memory.device_address(0), 1, 3 * MiB);
  std::memset(memory.host_address(0), 2, 5 * MiB);
  EXPECT_EQ(*memory.device_address(3 * MiB - 1), std::byte{1});
}

TEST(TierMemory, OfNothingTakesNothing) {
  auto device = make_host_device({});
  const TierMemory memory(*device, 0, 0);
  EXPECT_EQ(memory.device_slab().bytes(), 0u);
  EXPECT_EQ(resident_bytes(memory.host_slab()), 0u);
}

TEST(TierMemory, IsRefusedBeyondTheDevicesCapacity) {
  auto device = make_host_device({.memory_bytes = MiB});
  EXPECT_THROW(TierMemory(*device, 2 * MiB, 0), OutOfMemory);
}

TEST(ResidentBytes, CountsWhatWasTouchedAndNoMore) {
  auto device = make_host_device({});
  const Slab slab = device->allocate(32 * MiB);
  EXPECT_EQ(resident_bytes(slab), 0u);
  std::memset(slab.data(), 1, 8 * MiB);
  const std::uint64_t quarter = resident_bytes(slab);
  EXPECT_GE(quarter, 8 * MiB);
  EXPECT_LE(quarter, 10 * MiB);  // a huge page more at most
  std::memset(slab.data(), 1, 32 * MiB);
  EXPECT_EQ(resident_bytes(slab), 32 * MiB);
}

}  // namespace
}  // namespace strata
