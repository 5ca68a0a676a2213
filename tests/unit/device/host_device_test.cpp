#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

bool all_zero(const Slab& slab) {
  return std::all_of(slab.data(), slab.data() + slab.bytes(),
                     [](std::byte b) { return b == std::byte{0}; });
}

TEST(HostDevice, GivesZeroedSlabsAlignedForHugePages) {
  auto device = make_host_device({});
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, 3 * MiB + 17}) {
    const Slab slab = device->allocate(bytes), pinned = device->allocate_pinned(bytes);
    for (const Slab* s : {&slab, &pinned}) {
      EXPECT_GE(s->bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->data()) % (2 * MiB), 0u);
      EXPECT_TRUE(all_zero(*s));
    }
  }
}

TEST(HostDevice, CopiesInEveryDirection) {
  auto device = make_host_device({});
  auto stream = device->make_stream("copies");
  Slab host = device->allocate_pinned(10000), memory = device->allocate(20000);
  for (std::size_t i = 0; i < 10000; ++i) host.data()[i] = static_cast<std::byte>(i * 7);
  device->copy(memory.data(), host.data(), 10000, CopyKind::host_to_device, *stream);
  device->copy(memory.data() + 10000, memory.data(), 10000, CopyKind::device_to_device, *stream);
  Slab back = device->allocate_pinned(10000);
  device->copy(back.data(), memory.data() + 10000, 10000, CopyKind::device_to_host, *stream);
  stream->synchronize();
  EXPECT_EQ(std::memcmp(back.data(), host.data(), 10000), 0);
}

TEST(HostDevice, RefusesMoreThanItsCapacity) {
  auto device = make_host_device({.memory_bytes = 10 * MiB});
  EXPECT_EQ(device->info().memory_bytes, 10 * MiB);
  const Slab most = device->allocate(9 * MiB);
  try {
    device->allocate(2 * MiB);
    FAIL() << "no error";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.wanted_bytes(), 2 * MiB);
    EXPECT_EQ(error.free_bytes(), 1 * MiB);
  }
  EXPECT_NO_THROW(device->allocate(1 * MiB));
  EXPECT_NO_THROW(device->allocate_pinned(64 * MiB)) << "host memory is not the device's";
}

TEST(HostDevice, TakesAtLeastTheTimeOfASlowedLink) {
  auto device =
      make_host_device({.host_to_device_bytes_per_s = 100e6, .device_to_host_bytes_per_s = 50e6});
  auto stream = device->make_stream("slow");
  Slab host = device->allocate_pinned(MiB), memory = device->allocate(MiB);
  const auto seconds_of = [&](std::byte* target, const std::byte* source, CopyKind kind) {
    const std::int64_t start = now_ns();
    device->copy(target, source, MiB, kind, *stream);
    stream->synchronize();
    return seconds(now_ns() - start);
  };
  EXPECT_GE(seconds_of(memory.data(), host.data(), CopyKind::host_to_device), 0.0104);
  EXPECT_GE(seconds_of(host.data(), memory.data(), CopyKind::device_to_host), 0.0209);
}

TEST(Slab, GivesItsMemoryToOneOwner) {
  auto device = make_host_device({});
  Slab first = device->allocate(4096);
  std::byte* data = first.data();
  Slab second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT: a moved-from slab owns nothing
  second = device->allocate(8192);
  EXPECT_NE(second.data(), nullptr);
}

TEST(CudaDevice, IsRefusedWhereThereIsNone) {
  if (num_cuda_devices() > 0) GTEST_SKIP() << "this machine has one";
  EXPECT_THROW(make_cuda_device(0), ConfigError);
}

}  // namespace
}  // namespace strata
