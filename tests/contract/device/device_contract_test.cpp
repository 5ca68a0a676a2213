// What every Device that has bytes promises.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "contract/device/device_cases.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {
namespace {

using testing::DeviceCase;
using testing::DeviceRig;

class DeviceContract : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override { rig_ = GetParam().make(); }
  void TearDown() override {
    rig_.device.reset();
    if (rig_.check_at_end) rig_.check_at_end();
  }

  Device& device() { return *rig_.device; }
  Slab pinned_bytes(std::uint64_t bytes, unsigned seed) {
    Slab slab = device().allocate_pinned(bytes);
    fill(slab.data(), bytes, seed);
    return slab;
  }
  static void fill(std::byte* data, std::uint64_t bytes, unsigned seed) {
    for (std::uint64_t i = 0; i < bytes; ++i)
      data[i] = static_cast<std::byte>((i * 2654435761u + seed) >> 7);
  }
  // As it is once all that was given to `stream` is done.
  std::vector<std::byte> contents(const Slab& slab, std::uint64_t bytes, Stream& stream) {
    Slab host = device().allocate_pinned(bytes);
    device().copy(host.data(), slab.data(), bytes, CopyKind::device_to_host, stream);
    stream.synchronize();
    return {host.data(), host.data() + bytes};
  }
  static std::vector<std::byte> bytes_of(const Slab& slab, std::uint64_t bytes) {
    return {slab.data(), slab.data() + bytes};
  }

 private:
  DeviceRig rig_;
};

INSTANTIATE_TEST_SUITE_P(Devices, DeviceContract,
                         ::testing::ValuesIn(testing::devices_under_test()),
                         [](const auto& device) { return device.param.name; });

TEST_P(DeviceContract, GivesMemoryThatIsZero) {
  const auto stream = device().make_stream("check");
  const std::uint64_t bytes = 3 * MiB + 17;
  const Slab memory = device().allocate(bytes), pinned = device().allocate_pinned(bytes);
  EXPECT_GE(memory.bytes(), bytes);
  EXPECT_GE(pinned.bytes(), bytes);
  EXPECT_EQ(contents(memory, bytes, *stream), std::vector<std::byte>(bytes));
  EXPECT_EQ(bytes_of(pinned, bytes), std::vector<std::byte>(bytes));
}

TEST_P(DeviceContract, GivesNothingWhereNothingIsAsked) {
  EXPECT_EQ(device().allocate(0).bytes(), 0u);
  EXPECT_EQ(device().allocate_pinned(0).data(), nullptr);
}

TEST_P(DeviceContract, CopiesInEveryDirectionInTheStreamsOrder) {
  const auto stream = device().make_stream("copies");
  const std::uint64_t bytes = 100'003;
  const Slab source = pinned_bytes(bytes, 1), memory = device().allocate(2 * bytes);
  device().copy(memory.data() + bytes, source.data(), bytes, CopyKind::host_to_device, *stream);
  device().copy(memory.data(), memory.data() + bytes, bytes, CopyKind::device_to_device, *stream);
  EXPECT_EQ(contents(memory, bytes, *stream), bytes_of(source, bytes));
}

TEST_P(DeviceContract, CopiesHostMemoryThatIsNotPinned) {
  const auto stream = device().make_stream("copies");
  const std::uint64_t bytes = 9 * MiB + 5;
  std::vector<std::byte> source(bytes), target(bytes);
  fill(source.data(), bytes, 2);
  const Slab memory = device().allocate(bytes);
  device().copy(memory.data(), source.data(), bytes, CopyKind::host_to_device, *stream);
  device().copy(target.data(), memory.data(), bytes, CopyKind::device_to_host, *stream);
  stream->synchronize();
  EXPECT_TRUE(target == source);
}

TEST_P(DeviceContract, FillsDeviceAndPinnedMemory) {
  const auto stream = device().make_stream("fills");
  const Slab memory = device().allocate(5000), pinned = pinned_bytes(5000, 3);
  device().fill(memory.data(), 5000, std::byte{0xff}, *stream);
  device().zero(memory.data() + 1000, 1000, *stream);
  device().fill(pinned.data(), 5000, std::byte{7}, *stream);
  std::vector<std::byte> expected(5000, std::byte{0xff});
  std::fill_n(expected.begin() + 1000, 1000, std::byte{0});
  EXPECT_EQ(contents(memory, 5000, *stream), expected);
  EXPECT_EQ(bytes_of(pinned, 5000), std::vector<std::byte>(5000, std::byte{7}));
}

// Each stream goes on where the one before has come to, and no thread waits in between.
TEST_P(DeviceContract, OrdersWorkOfStreamsByEvents) {
  const std::uint64_t bytes = 400'000;
  const Slab source = pinned_bytes(bytes, 4), memory = device().allocate(8 * bytes);
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Event>> events;
  for (std::uint64_t i = 0; i < 8; ++i) {
    streams.push_back(device().make_stream("stage " + std::to_string(i)));
    events.push_back(device().make_event());
    std::byte* const own = memory.data() + i * bytes;
    if (i == 0) {
      device().copy(own, source.data(), bytes, CopyKind::host_to_device, *streams[0]);
    } else {
      streams[i]->wait(*events[i - 1]);
      device().copy(own, own - bytes, bytes, CopyKind::device_to_device, *streams[i]);
    }
    streams[i]->record(*events[i]);
  }
  Slab back = device().allocate_pinned(bytes);
  device().copy(back.data(), memory.data() + 7 * bytes, bytes, CopyKind::device_to_host,
                *streams[7]);
  streams[7]->synchronize();
  EXPECT_EQ(bytes_of(back, bytes), bytes_of(source, bytes));
}

TEST_P(DeviceContract, WaitsForTheRecordThatThereWasWhenItWasAsked) {
  const auto first = device().make_stream("first"), second = device().make_stream("second");
  const auto event = device().make_event();
  const Slab one = pinned_bytes(1000, 5), memory = device().allocate(1000);
  device().copy(memory.data(), one.data(), 1000, CopyKind::host_to_device, *first);
  first->record(*event);
  second->wait(*event);
  const std::vector<std::byte> got = contents(memory, 1000, *second);
  first->record(*event);  // again, while nobody waits for it
  event->synchronize();
  EXPECT_EQ(got, bytes_of(one, 1000));
}

TEST_P(DeviceContract, HasWorkDoneWhenAnEventIsReached) {
  const auto stream = device().make_stream("work");
  const auto event = device().make_event();
  const Slab source = pinned_bytes(300'000, 6), memory = device().allocate(300'000);
  const Slab back = device().allocate_pinned(300'000);
  device().copy(memory.data(), source.data(), 300'000, CopyKind::host_to_device, *stream);
  device().copy(back.data(), memory.data(), 300'000, CopyKind::device_to_host, *stream);
  stream->record(*event);
  event->synchronize();
  EXPECT_TRUE(event->is_reached());
  EXPECT_EQ(bytes_of(back, 300'000), bytes_of(source, 300'000));
}

TEST_P(DeviceContract, TellsWhenEventsWereReachedInTheirOrder) {
  const auto stream = device().make_stream("work");
  const auto begin = device().make_event(), end = device().make_event();
  const Slab memory = device().allocate(MiB);
  stream->record(*begin);
  device().zero(memory.data(), MiB, *stream);
  stream->record(*end);
  end->synchronize();
  const std::int64_t second = 1'000'000'000;
  EXPECT_LE(begin->time_ns(), end->time_ns());
  EXPECT_LT(std::abs(end->time_ns() - now_ns()), 60 * second) << "another clock";
}

TEST_P(DeviceContract, RefusesMoreMemoryThanThereIs) {
  const DeviceInfo info = device().info();
  EXPECT_FALSE(info.name.empty());
  try {
    device().allocate(info.memory_bytes + GiB);
    FAIL() << "no error";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.wanted_bytes(), info.memory_bytes + GiB);
    EXPECT_LE(error.free_bytes(), info.memory_bytes);
  }
  EXPECT_NO_THROW(device().allocate(MiB)) << "nothing is broken";
}

TEST_P(DeviceContract, HasStreamsOfItsOwnWhereItIsAsynchronous) {
  const auto stream = device().make_stream("work");
  EXPECT_EQ(stream->native() != nullptr, device().completion() == Completion::on_stream);
  device().use_on_this_thread();
  device().begin_range("a range of nothing");
  device().end_range();
}

}  // namespace
}  // namespace strata
