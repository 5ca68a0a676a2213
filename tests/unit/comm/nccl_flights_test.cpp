// When a collective counts as one that hangs.

#include "src/comm/nccl/nccl_flights.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "fake_cuda/fake_cuda.hpp"
#include "src/device/cuda/cuda_device.hpp"

namespace strata::testing {
namespace {

// A stream with one work that ends when it is told to.
class HeldStream {
 public:
  HeldStream(FakeCuda& cuda, Device& device) : stream_(device.make_stream("held")) {
    const auto may = [this] { return may_end_.load(); };
    cuda.launch_joint(stream_->native(), "held", {}, {may, [] {}, may, [] {}});
  }
  Stream& stream() { return *stream_; }
  void end() {
    may_end_ = true;
    stream_->synchronize();
  }

 private:
  std::atomic<bool> may_end_ = false;
  std::unique_ptr<Stream> stream_;
};

constexpr std::int64_t second_ns = 1'000'000'000;

struct FlightsOfTest {
  FakeCuda cuda{{}};
  std::unique_ptr<Device> device = make_cuda_device(cuda, 1, {});
  std::int64_t now_ns = 0;
  NcclFlights flights{*device, [this] { return now_ns; }};

  std::int64_t overdue_elements(double seconds) {
    const auto late = flights.overdue(seconds);
    return late ? late->count : 0;
  }
};

TEST(NcclFlights, CountTheTimeOfOneFromTheEndOfTheOneBefore) {
  FlightsOfTest test;
  HeldStream first(test.cuda, *test.device), second(test.cuda, *test.device);
  test.flights.note({Collective::all_gather, DType::f32, 10}, first.stream());
  test.flights.note({Collective::all_gather, DType::f32, 20}, second.stream());
  test.now_ns = 5 * second_ns;
  EXPECT_EQ(test.overdue_elements(5.5), 0);
  EXPECT_EQ(test.overdue_elements(5), 10);
  first.end();
  EXPECT_EQ(test.overdue_elements(5), 0);
  test.now_ns = 9 * second_ns;
  EXPECT_EQ(test.overdue_elements(4.5), 0);
  EXPECT_EQ(test.overdue_elements(4), 20);
  second.end();
  EXPECT_EQ(test.overdue_elements(0), 0);
  EXPECT_THAT(test.cuda.complaints(), ::testing::IsEmpty());
}

TEST(NcclFlights, LookAtNoMoreThanThereIsRoomFor) {
  FlightsOfTest test;
  HeldStream held(test.cuda, *test.device);
  for (std::int64_t count = 1; count <= 100; ++count)
    test.flights.note({Collective::all_gather, DType::f32, count}, held.stream());
  EXPECT_EQ(test.overdue_elements(0), 1);
  held.end();
  EXPECT_EQ(test.overdue_elements(0), 0);
  test.flights.note({Collective::all_gather, DType::f32, 7}, held.stream());
  held.end();
  EXPECT_EQ(test.overdue_elements(0), 0);
}

// Real CUDA opens the first device for such a thread.
TEST(FakeCuda, ComplainsOfAThreadWithoutADeviceThatAsksForAnEvent) {
  FlightsOfTest test;
  const auto event = test.device->make_event();
  std::jthread([&] {
    test.device->use_on_this_thread();
    event->synchronize();
  }).join();
  EXPECT_THAT(test.cuda.complaints(), ::testing::IsEmpty());
  FlightsOfTest other;
  const auto others = other.device->make_event();
  std::jthread([&] { others->is_reached(); }).join();
  EXPECT_THAT(other.cuda.complaints(),
              ::testing::Contains(::testing::HasSubstr("was given no device")));
}

}  // namespace
}  // namespace strata::testing
