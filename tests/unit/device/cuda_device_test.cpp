// The CUDA device over a fake of its runtime: what is its own, beside tests/contract/device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fake_cuda/fake_cuda.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeCuda;
using testing::FakeCudaOptions;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CudaDeviceOverFake, IsAsynchronousAndKnowsWhatItIs) {
  FakeCuda fake({});
  const auto device = make_cuda_device(fake, 1, {});
  EXPECT_EQ(device->completion(), Completion::on_stream);
  EXPECT_EQ(device->info().name, "Fake GPU");
  EXPECT_EQ(device->info().numa_node, 0);
  EXPECT_EQ(device->info().memory_bytes, GiB);
}

TEST(CudaDeviceOverFake, IsRefusedWhereThereIsNone) {
  FakeCuda fake({.num_devices = 2});
  EXPECT_THAT(error_of([&] { make_cuda_device(fake, 2, {}); }),
              AllOf(HasSubstr("no CUDA device 2"), HasSubstr("has 2")));
  FakeCuda none({.num_devices = 0});
  EXPECT_THAT(error_of([&] { make_cuda_device(none, 0, {}); }), HasSubstr("no CUDA device"));
  EXPECT_EQ(num_cuda_devices(none), 0);
}

TEST(CudaDeviceOverFake, TellsOfDevicesAndTheirPeers) {
  FakeCuda fake({.num_devices = 3});
  const CudaInventory inventory = read_cuda_devices(fake);
  EXPECT_EQ(inventory.failure, "");
  EXPECT_EQ(inventory.driver_version, "13.0");
  EXPECT_EQ(inventory.runtime_version, "12.8");
  ASSERT_EQ(inventory.devices.size(), 3u);
  ASSERT_EQ(inventory.devices[1].peers.size(), 2u);
  EXPECT_EQ(inventory.devices[1].peers[0].ordinal, 0);
  EXPECT_EQ(inventory.devices[1].peers[1].ordinal, 2);
  EXPECT_TRUE(inventory.devices[1].peers[0].has_native_atomics);
}

TEST(CudaDeviceOverFake, SaysWhyTheDriverKnowsNoDevice) {
  FakeCuda fake({.failing_call = 1});
  const CudaInventory inventory = read_cuda_devices(fake);
  EXPECT_THAT(inventory.failure,
              AllOf(HasSubstr("cudaGetDeviceCount"), HasSubstr("cudaErrorLaunchFailure (719)"),
                    HasSubstr("unspecified launch failure")));
  EXPECT_THAT(inventory.devices, IsEmpty());
}

TEST(CudaInventory, IsHiddenByWhatNamesNoDevice) {
  for (const char* nothing : {"", "-1", "NoDevFiles"}) EXPECT_TRUE(hides_all_devices(nothing));
  for (const char* some : {"0", "1,3", "GPU-8932f937"}) EXPECT_FALSE(hides_all_devices(some));
  EXPECT_FALSE(hides_all_devices(nullptr));
}

TEST(CudaDeviceOverFake, ReachesThePeersThatItIsToldTo) {
  FakeCuda fake({.num_devices = 3});
  EXPECT_NO_THROW(make_cuda_device(fake, 1, {.peers = {0, 2}}));
  EXPECT_THAT(error_of([&] { make_cuda_device(fake, 1, {.peers = {7}}); }),
              HasSubstr("cudaDeviceEnablePeerAccess(7)"));
}

TEST(CudaDeviceOverFake, LetsPinnedMemoryBePlacedBeforeItIsRegistered) {
  FakeCuda fake({});
  std::vector<std::uint64_t> placed;
  CudaPointer kind = CudaPointer::pinned;
  const auto place = [&](std::span<std::byte> memory) {
    placed.push_back(memory.size());
    fake.pointer_kind(memory.data(), kind);
  };
  const auto device = make_cuda_device(fake, 0, {.place_pinned = place});
  const Slab slab = device->allocate_pinned(3 * MiB);
  EXPECT_THAT(placed, ElementsAre(3 * MiB));
  EXPECT_EQ(kind, CudaPointer::unregistered);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slab.data()) % (2 * MiB), 0u) << "for huge pages";
  fake.pointer_kind(slab.data(), kind);
  EXPECT_EQ(kind, CudaPointer::pinned);
}

// What is copied may be changed at once, though the copy is still to come.
TEST(CudaDeviceOverFake, CopiesMemoryThatIsNotPinnedAsItIsNow) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FakeCuda fake({.seed = seed});
    const auto device = make_cuda_device(fake, 0, {});
    const auto stream = device->make_stream("h2d");
    const Slab memory = device->allocate(4000);
    Slab back = device->allocate_pinned(4000);
    std::vector<std::byte> source(4000, std::byte{1});
    device->copy(memory.data(), source.data(), 4000, CopyKind::host_to_device, *stream);
    std::ranges::fill(source, std::byte{2});
    device->copy(back.data(), memory.data(), 4000, CopyKind::device_to_host, *stream);
    stream->synchronize();
    EXPECT_EQ(back.data()[3999], std::byte{1});
    EXPECT_THAT(fake.complaints(), IsEmpty());
  }
}

// Who has only asked has not waited for what was before, and the fake complains of who thinks so.
TEST(CudaDeviceOverFake, TellsWhetherAnEventIsReachedWithoutWaiting) {
  int num_unreached = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    FakeCuda fake({.seed = seed});
    const auto device = make_cuda_device(fake, 0, {});
    const auto stream = device->make_stream("h2d");
    const auto event = device->make_event();
    const Slab memory = device->allocate(64);
    device->fill(memory.data(), 64, std::byte{1}, *stream);
    stream->record(*event);
    while (!event->is_reached()) ASSERT_LT(++num_unreached, 10000);
    fake.host_touches({memory.data(), 64, testing::Touch::reads}, "the test");
    EXPECT_THAT(fake.complaints(), ::testing::SizeIs(1));
    event->synchronize();
    EXPECT_TRUE(event->is_reached());
  }
  EXPECT_GT(num_unreached, 10);
}

TEST(CudaDeviceOverFake, NamesTheCallTheErrorAndTheWork) {
  FakeCuda counted({});
  std::uint64_t calls = 0;
  const auto copy = [&](FakeCuda& fake) {
    const auto device = make_cuda_device(fake, 0, {});
    const auto stream = device->make_stream("state_h2d");
    const Slab memory = device->allocate(2 * MiB), host = device->allocate_pinned(2 * MiB);
    calls = fake.num_calls();
    device->copy(memory.data(), host.data(), 2 * MiB, CopyKind::host_to_device, *stream);
    stream->synchronize();
  };
  copy(counted);
  FakeCuda failing({.failing_call = calls + 1});  // The first asks what memory it is.
  EXPECT_THAT(error_of([&] { copy(failing); }),
              AllOf(HasSubstr("cudaMemcpyAsync of 2.00 MiB to the device on stream state_h2d"),
                    HasSubstr("cudaErrorLaunchFailure (719): unspecified launch failure"),
                    HasSubstr("compute-sanitizer")));
}

TEST(CudaDeviceOverFake, GivesEverythingBackWhicheverCallFails) {
  const auto use = [](FakeCuda& fake) {
    const auto device = make_cuda_device(fake, 1, {.peers = {0}});
    const auto stream = device->make_stream("work");
    const auto event = device->make_event();
    const Slab memory = device->allocate(MiB), host = device->allocate_pinned(MiB);
    const std::vector<std::byte> source(MiB);
    device->copy(memory.data(), source.data(), MiB, CopyKind::host_to_device, *stream);
    device->copy(host.data(), memory.data(), MiB, CopyKind::device_to_host, *stream);
    stream->record(*event);
    event->synchronize();
    event->time_ns();
  };
  FakeCuda whole({});
  use(whole);
  EXPECT_THAT(whole.leaks(), IsEmpty());
  std::uint64_t failures = 0;
  for (std::uint64_t call = 0; call < whole.num_calls(); ++call) {
    FakeCuda fake({.failing_call = call});
    failures += error_of([&] { use(fake); }).empty() ? 0 : 1;
    EXPECT_THAT(fake.leaks(), IsEmpty()) << "call " << call;
    EXPECT_THAT(fake.complaints(), IsEmpty()) << "call " << call;
  }
  EXPECT_GT(failures, whole.num_calls() / 2) << "only what gives back may fail in silence";
}

}  // namespace
}  // namespace strata
