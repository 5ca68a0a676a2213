// Host memory registered in chunks over the fake runtime: where they end, what is undone when one
// is refused, and what is told. Of the memory only pages near borders are touched.

#include "src/device/cuda/pinned_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "fake_cuda/fake_cuda.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeCuda;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::uint64_t slab_bytes = 3 * GiB;  // two or three borders, wherever it begins

std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

// The first address in the slab, but its own, where a chunk begins.
std::uint64_t first_border(const Slab& slab) {
  return bytes_within_chunk(slab.data(), slab.bytes());
}

// A device whose system refuses to register slabs from this byte on.
class RefusedPinning : public ::testing::Test {
 protected:
  std::unique_ptr<Device> device_that_refuses_from(std::uint64_t first_refused) {
    CudaDeviceOptions options;
    options.place_pinned = [this, first_refused](std::span<std::byte> memory) {
      fake_.refuse_pinning(memory.subspan(first_refused));
    };
    options.on_pageable = [this](const std::string& why) { told_.push_back(why); };
    return make_cuda_device(fake_, 0, options);
  }

  FakeCuda fake_{{}};
  std::vector<std::string> told_;
};

TEST(PinnedMemory, IsRegisteredInChunksThatEndAtTheSameAddressesAlways) {
  FakeCuda fake({});
  {
    const Slab slab = allocate_pinned_memory(fake, 0, slab_bytes, {});
    const std::vector<std::uint64_t> chunks = fake.registrations();
    EXPECT_THAT(chunks, Each(Le(pinned_chunk_bytes)));
    EXPECT_EQ(sum_of(chunks), slab_bytes);
    const std::byte* border = slab.data();
    for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
      border += chunks[i];
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(border) % pinned_chunk_bytes, 0u);
    }
  }
  EXPECT_THAT(fake.leaks(), IsEmpty()) << "each chunk by its own address";
  EXPECT_THAT(fake.complaints(), IsEmpty());
}

TEST(PinnedMemory, IsCopiedAndFilledAcrossBorders) {
  FakeCuda fake({});
  const auto device = make_cuda_device(fake, 0, {});
  const auto stream = device->make_stream("copies");
  const Slab host = device->allocate_pinned(slab_bytes), memory = device->allocate(8192);
  std::byte* const across = host.data() + first_border(host) - 3000;
  for (std::uint64_t i = 0; i < 8192; ++i) across[i] = static_cast<std::byte>(i % 251);
  const std::vector<std::byte> before(across, across + 8192);
  device->copy(memory.data(), across, 8192, CopyKind::host_to_device, *stream);
  device->fill(across, 8192, std::byte{7}, *stream);
  stream->synchronize();
  EXPECT_EQ(std::vector<std::byte>(across, across + 8192), std::vector(8192, std::byte{7}));
  device->copy(across, memory.data(), 8192, CopyKind::device_to_host, *stream);
  stream->synchronize();
  EXPECT_EQ(std::vector<std::byte>(across, across + 8192), before);
  EXPECT_THAT(fake.complaints(), IsEmpty());
}

// The slab's last byte is refused: every chunk but the last was registered.
TEST_F(RefusedPinning, LeavesMemoryPageableWithNothingRegisteredAndTellsWhy) {
  const auto device = device_that_refuses_from(slab_bytes - 1);
  const Slab slab = device->allocate_pinned(slab_bytes);
  EXPECT_THAT(fake_.registrations(), IsEmpty());
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_THAT(told_[0], AllOf(HasSubstr("cudaHostRegister of"), HasSubstr("of 3.00 GiB registered"),
                              HasSubstr("cudaErrorMemoryAllocation (2)"),
                              HasSubstr("offload.cpu_limit"), HasSubstr("ulimit -l"),
                              Not(HasSubstr("offload.gpu_limit")), Not(HasSubstr("nvidia-smi"))));
  EXPECT_EQ(fake_.take_last_error(), CudaStatus::success) << "a launch would be blamed for it";
  slab.data()[slab_bytes - 1] = std::byte{1};
  EXPECT_THAT(fake_.complaints(), IsEmpty());
}

TEST_F(RefusedPinning, IsAnErrorWithTheSameAdviceWhereMemoryMustBePinned) {
  const PinnedMemoryOptions options{.place = [this](std::span<std::byte> memory) {
    fake_.refuse_pinning(memory.subspan(slab_bytes - 1));
  }};
  try {
    allocate_pinned_memory(fake_, 0, slab_bytes, options);
    FAIL() << "it was given memory";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("offload.cpu_limit"), HasSubstr("ulimit -l")));
  }
  EXPECT_THAT(fake_.leaks(), IsEmpty());
  EXPECT_EQ(fake_.take_last_error(), CudaStatus::success);
  EXPECT_THAT(fake_.complaints(), IsEmpty());
}

// What went wrong before, which this call happens to report, is no refusal.
TEST_F(RefusedPinning, IsNotWhatAnEarlierFailureIs) {
  std::uint64_t calls = 0;
  {
    FakeCuda counted({});
    const auto device = make_cuda_device(counted, 0, {});
    calls = counted.num_calls();
  }
  FakeCuda failing({.failing_call = calls + 1});  // The first chooses the device.
  const auto device = make_cuda_device(
      failing, 0, {.on_pageable = [this](const std::string& why) { told_.push_back(why); }});
  EXPECT_THROW(device->allocate_pinned(MiB), Error);
  EXPECT_THAT(told_, IsEmpty());
}

// Else the buffer would be registered, or refused, in the middle of a step.
TEST_F(RefusedPinning, HasStreamsMakeTheirBuffersAtOnce) {
  const auto device = device_that_refuses_from(0);
  const auto before = device->make_stream("before");
  EXPECT_THAT(fake_.registrations(), IsEmpty());
  const Slab slab = device->allocate_pinned(MiB), memory = device->allocate(MiB);
  const auto after = device->make_stream("after");
  const std::vector<std::uint64_t> buffers = fake_.registrations();
  EXPECT_EQ(sum_of(buffers), 4 * MiB);
  device->copy(memory.data(), slab.data(), MiB, CopyKind::host_to_device, *after);
  device->copy(slab.data(), memory.data(), MiB, CopyKind::device_to_host, *after);
  EXPECT_EQ(fake_.registrations(), buffers);
  EXPECT_THAT(fake_.complaints(), IsEmpty());
}

}  // namespace
}  // namespace strata
