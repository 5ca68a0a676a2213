#include "src/measure/bench_tensor.hpp"

#include <gtest/gtest.h>

#include <set>

#include "src/measure/kernel_timer.hpp"

namespace strata {
namespace {

BenchTensor tensor_of(DType dtype, std::int64_t count, BenchValues values) {
  const auto device = make_host_device({});
  const auto stream = device->make_stream("test");
  return {*device, *stream, dtype, {count}, values};
}

TEST(BenchTensor, HoldsValuesBetweenMinusOneAndOneToItsLastElement) {
  constexpr std::int64_t count = 200'003;  // more than three periods
  const BenchTensor tensor = tensor_of(DType::f32, count, BenchValues::random);
  const TensorView view = tensor;
  std::set<float> different;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = view.as<float>()[i];
    ASSERT_GE(value, -1.001f);
    ASSERT_LE(value, 1.001f);
    different.insert(value);
    sum += value;
  }
  EXPECT_GT(different.size(), 50'000u);
  EXPECT_NEAR(sum / count, 0, 0.02);
  EXPECT_NE(view.as<float>()[count - 1], 0);
}

TEST(BenchTensor, RepeatsItselfByAPrimeSoThatRowsDiffer) {
  const BenchTensor tensor = tensor_of(DType::bf16, 3 * 65536, BenchValues::random);
  const auto* values = TensorView(tensor).as<bfloat16>();
  int different = 0;
  for (int i = 0; i < 1000; ++i) different += values[i].bits != values[65536 + i].bits;
  EXPECT_GT(different, 900);
}

TEST(BenchTensor, IsZeroOfAnyDTypeWhereAsked) {
  for (const DType dtype : {DType::q8, DType::u16, DType::i32}) {
    const BenchTensor tensor = tensor_of(dtype, 1000, BenchValues::zeros);
    const TensorView view = tensor;
    for (std::int64_t i = 0; i < view.bytes(); ++i) ASSERT_EQ(view.as<char>()[i], 0);
  }
}

TEST(KernelTimer, CountsWhatACallAsksOfTheHardware) {
  const auto device = make_host_device({});
  const auto kernels = make_ref_kernels();
  KernelTimer timer(*device, *kernels, {.repeats = 3, .sample_seconds = 1e-6});
  const BenchTensor x = timer.tensor(DType::f32, {2, 3}), w = timer.tensor(DType::f32, {4, 3}),
                    y = timer.tensor(DType::f32, {2, 4});
  int calls = 0;
  const TimedCall timed = timer.time([&](Kernels& on, Stream& stream) {
    ++calls;
    on.linear_forward(x, w, {}, y, Accumulate::no, stream);
  });
  EXPECT_EQ(timed.flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(timed.bytes, 4 * (6 + 12 + 8));
  EXPECT_EQ(timed.seconds.values.size(), 3u);
  EXPECT_GE(calls, 6) << "counted, two that do not count, and the samples";
  EXPECT_GT(timed.flops_per_s(), 0);
}

}  // namespace
}  // namespace strata
