#include <gtest/gtest.h>

#include <cstdint>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

TEST(MetaDevice, GivesDistinctAddressesFarBeyondAnyMemory) {
  const auto device = make_meta_device();
  const Slab first = device->allocate(256 * GiB), second = device->allocate_pinned(256 * GiB);
  EXPECT_EQ(first.bytes(), 256 * GiB);
  EXPECT_NE(first.data(), nullptr);
  EXPECT_TRUE(first.data() + first.bytes() <= second.data() ||
              second.data() + second.bytes() <= first.data());
}

TEST(MetaDevice, CopiesWithoutTouchingMemory) {
  const auto device = make_meta_device();
  const auto stream = device->make_stream("copies");
  const Slab memory = device->allocate(2 * MiB);
  device->copy(memory.data(), memory.data() + MiB, MiB, CopyKind::device_to_device, *stream);
  std::byte untouched{7};
  device->copy(&untouched, memory.data(), 1, CopyKind::device_to_host, *stream);
  EXPECT_EQ(untouched, std::byte{7});
}

TEST(MetaDevice, HasEventsThatAreDone) {
  const auto device = make_meta_device();
  const auto stream = device->make_stream("any");
  const auto event = device->make_event();
  stream->record(*event);
  stream->wait(*event);
  event->synchronize();
  stream->synchronize();
  EXPECT_EQ(device->info().name, "meta");
}

TEST(MetaDevice, RefusesMoreAddressesThanThereAre) {
  EXPECT_THROW(make_meta_device()->allocate(std::uint64_t{1} << 62), OutOfMemory);
}

// Nothing can stand behind its addresses by mistake.
TEST(MetaDeviceDeathTest, StopsWhoTouchesItsMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Slab memory = make_meta_device()->allocate(MiB);
  EXPECT_DEATH(*static_cast<volatile std::byte*>(memory.data()) = std::byte{1}, "");
}

}  // namespace
}  // namespace strata
