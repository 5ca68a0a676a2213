// What stages operands for a device copies them all, in order, and finds writes that no operand
// allows: on the host, and over the fake runtime, which knows of every wait that is missing.

#include "support/staged_kernels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/kernels/kernels_harness.hpp"
#include "fake_cuda/fake_cuda.hpp"
#include "fake_cuda/streamed_kernels.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of what `write` does with the device's copies of an operand to read and one to write.
std::string error_of(const std::function<void(float* read, float* written)>& write) {
  const auto device = make_host_device({});
  StagingArena arena(*device);
  const Tensor read = zeros(DType::f32, {10}), written(DType::f32, {10}, 3);
  TensorView a = read, b = written;
  StagedCall call(arena, "copy");
  call.reads("a", a).writes("b", b);
  try {
    call.run([&] { write(a.as<float>(), b.as<float>()); });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(StagedCall, FindsWritesAroundAnOperandAndToOneThatIsRead) {
  EXPECT_EQ(error_of([](float*, float* b) { b[0] = b[9] = 1; }), "");
  EXPECT_EQ(error_of([](float*, float*) {}), "");
  const auto is_told = AllOf(HasSubstr("copy has written where it may not"), HasSubstr(" b ["),
                             HasSubstr(" a ["), HasSubstr("(to be read)"));
  EXPECT_THAT(error_of([](float*, float* b) { b[10] = 1; }), is_told);
  EXPECT_THAT(error_of([](float*, float* b) { b[-1] = 1; }), is_told);
  EXPECT_THAT(error_of([](float*, float* b) { b[100] = 1; }), is_told);
  EXPECT_THAT(error_of([](float* a, float*) { a[4] = 1; }), is_told);
}

class StagedLayout : public ::testing::TestWithParam<Operands> {};

INSTANTIATE_TEST_SUITE_P(Layouts, StagedLayout,
                         ::testing::Values(Operands::together, Operands::apart),
                         [](const auto& test) {
                           return test.param == Operands::together ? "Together" : "Apart";
                         });

TEST_P(StagedLayout, KeepsAlignmentOverlapAndAbsence) {
  const auto device = make_host_device({});
  StagingArena arena(*device, GetParam());
  const Tensor whole(DType::f32, {64}, 5);
  TensorView first = whole.view().slice(0, {40}), second = whole.view().slice(30, {34}), none;
  std::span<std::byte> scratch;
  StagedCall call(arena, "overlap");
  call.reads("first", first).writes("second", second).writes("none", none).scratch(scratch);
  call.run([&] {
    EXPECT_NE(first.data, whole.view().data);
    EXPECT_EQ(first.as<float>() + 30, second.as<float>());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data) % 256,
              reinterpret_cast<std::uintptr_t>(whole.view().data) % 256);
    EXPECT_TRUE(none.empty() && scratch.empty());
    second.as<float>()[5] = 7;
  });
  EXPECT_EQ(whole.at(35), 7);
}

TEST_P(StagedLayout, TakesOperandsOfEverySizeOneAfterTheOther) {
  const auto device = make_host_device({});
  StagingArena arena(*device, GetParam());
  for (std::int64_t n : {1, 100'000, 7, 2'000'000}) {
    Tensor values = zeros(DType::f32, {n});
    values.set(n - 1, 3);
    TensorView view = values;
    StagedCall(arena, "grow").writes("values", view).run([&] {
      EXPECT_EQ(view.as<float>()[n - 1], 3);
      view.as<float>()[n - 1] = 4;
    });
    EXPECT_EQ(values.at(n - 1), 4);
  }
}

// Copies, work and copies back are all on one stream, and the host waits before it looks.
TEST_P(StagedLayout, OrdersAllWorkOnACudaDevice) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FakeCuda fake({.seed = seed});
    {
      const auto device = make_cuda_device(fake, 1, {});
      const auto host = make_ref_kernels();
      StagingArena arena(*device, GetParam());
      const auto staged = make_staged_kernels(arena, make_streamed_kernels(fake, *host));
      PhiloxStream random(91, seed);
      const Tensor source = random_normal(random, DType::bf16, {9001}),
                   target = random_normal(random, DType::f32, {9001}), expected = copy_of(target),
                   sums(DType::f64, {3}), expected_sums(DType::f64, {3});
      for (int repeat = 0; repeat < 3; ++repeat) {
        staged->accumulate(source, target, Accumulate::yes, host_stream());
        host->accumulate(source, expected, Accumulate::yes, host_stream());
      }
      staged->square_sums(target, sums, host_stream());
      host->square_sums(expected, expected_sums, host_stream());
      EXPECT_EQ(target.bits(), expected.bits());
      EXPECT_EQ(sums.bits(), expected_sums.bits());
    }
    EXPECT_THAT(fake.complaints(), IsEmpty());
    EXPECT_THAT(fake.leaks(), IsEmpty());
  }
}

}  // namespace
}  // namespace strata::testing
