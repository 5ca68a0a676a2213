// Copies of a measurement on a CUDA device over the fake runtime, which complains of every wait
// that real hardware would miss.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cuda/fake_cuda.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "src/measure/compute_bench.hpp"
#include "src/measure/link_bench.hpp"

namespace strata {
namespace {

using ::testing::Each;
using testing::FakeCuda;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(GpuCopies, WaitForAllThatTheyMustAndGiveEverythingBack) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    FakeCuda fake({.seed = seed});
    {
      const auto device = make_cuda_device(fake, 0, {});
      BenchProgress progress({});
      const LinkRates link = bench_link(*device, 40 << 20, 2, progress);
      for (const Samples& rates : {link.up, link.down, link.both})
        EXPECT_THAT(rates.values, ::testing::AllOf(SizeIs(2), Each(Gt(0))));
      const auto kernels = make_ref_kernels();
      KernelTimer timer(*device, *kernels, {.repeats = 2, .sample_seconds = 1e-5});
      EXPECT_THAT(device_copy_rates(timer, 1 << 20).values, Each(Gt(0)));
    }
    EXPECT_THAT(fake.complaints(), IsEmpty());
    EXPECT_THAT(fake.leaks(), IsEmpty());
  }
}

TEST(GpuCopies, FillATensorThatIsReadAsSoonAsItIsThere) {
  FakeCuda fake({});
  const auto device = make_cuda_device(fake, 0, {});
  const auto stream = device->make_stream("test");
  constexpr std::int64_t count = 150'000;
  const BenchTensor tensor(*device, *stream, DType::f32, {count}, BenchValues::random);
  Slab back = device->allocate_pinned(count * sizeof(float));
  device->copy(back.data(), TensorView(tensor).as<std::byte>(), count * sizeof(float),
               CopyKind::device_to_host, *stream);
  stream->synchronize();
  const auto* values = reinterpret_cast<const float*>(back.data());
  EXPECT_EQ(values[count - 1], values[(count - 1) % 65537]);
  EXPECT_NE(values[count - 1], 0);
  EXPECT_THAT(fake.complaints(), IsEmpty());
}

}  // namespace
}  // namespace strata
