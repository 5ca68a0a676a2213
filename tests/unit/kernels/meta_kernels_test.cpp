// Operands are counted at their declared sizes; there is no memory behind them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "strata/core/bytes.hpp"
#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/program/program.hpp"

namespace strata {
namespace {

using ::testing::SizeIs;

constexpr std::int64_t t = 6, k = 10, n = 14;

class MetaKernelsTest : public ::testing::Test {
 protected:
  TensorView tensor(DType dtype, Shape shape) const { return {slab_.data(), dtype, shape}; }
  TensorView bf16(Shape shape) const { return tensor(DType::bf16, shape); }
  TensorView f32(Shape shape) const { return tensor(DType::f32, shape); }
  TensorView i32(Shape shape) const { return tensor(DType::i32, shape); }

  // Expects that exactly one call was made since the last look.
  void expect_call(KernelClass kind, DType dtype, std::int64_t flops, std::int64_t bytes) {
    ASSERT_THAT(calls_, SizeIs(1));
    EXPECT_EQ(calls_[0].kind, kind);
    EXPECT_EQ(calls_[0].dtype, dtype);
    EXPECT_EQ(calls_[0].flops, static_cast<double>(flops));
    EXPECT_EQ(calls_[0].bytes, static_cast<double>(bytes));
    EXPECT_EQ(calls_[0].calls, 1);
    calls_.clear();
  }
  void expect_elementwise(std::int64_t bytes, DType dtype = DType::bf16) {
    expect_call(KernelClass::elementwise, dtype, 0, bytes);
  }
  void expect_product(std::int64_t flops, std::int64_t bytes) {
    expect_call(KernelClass::matmul, DType::bf16, flops, bytes);
  }

  std::unique_ptr<Device> device_ = make_meta_device();
  std::unique_ptr<Stream> stream_ = device_->make_stream("meta");
  Slab slab_ = device_->allocate(MiB);
  std::unique_ptr<Kernels> sizes_ = make_ref_kernels();
  std::vector<KernelWork> calls_;
  std::unique_ptr<Kernels> kernels_ = make_meta_kernels(*sizes_, calls_);
};

TEST_F(MetaKernelsTest, CountsAnEmbeddingByTheRowsThatMove) {
  const TensorView table = bf16({1000, k});
  kernels_->embedding_forward(i32({t}), table, bf16({t, k}), *stream_);
  expect_elementwise(4 * t + 2 * 2 * t * k);
  kernels_->embedding_backward(i32({t}), bf16({t, k}), table, {}, *stream_);
  expect_elementwise(4 * t + 2 * t * k + 2 * 1000 * k);
}

TEST_F(MetaKernelsTest, CountsTheOperandsOfANorm) {
  kernels_->rmsnorm_forward(bf16({t, k}), bf16({k}), 1e-5f, bf16({t, k}), f32({t}), *stream_);
  expect_elementwise(2 * (2 * t * k + k) + 4 * t);
  const auto backward = [&](Accumulate accumulate) {
    kernels_->rmsnorm_backward(bf16({t, k}), bf16({t, k}), bf16({k}), f32({t}), bf16({t, k}),
                               accumulate, bf16({k}), {}, *stream_);
  };
  backward(Accumulate::no);
  expect_elementwise(2 * (3 * t * k + 2 * k) + 4 * t);
  backward(Accumulate::yes);
  expect_elementwise(2 * (4 * t * k + 2 * k) + 4 * t);
}

TEST_F(MetaKernelsTest, CountsTwoFlopsPerMultiplicationOfAProduct) {
  const std::int64_t flops = 2 * t * k * n;
  const std::int64_t x = 2 * t * k, w = 2 * n * k, y = 2 * t * n;
  kernels_->linear_forward(bf16({t, k}), bf16({n, k}), bf16({n}), bf16({t, n}), Accumulate::no,
                           *stream_);
  expect_product(flops, x + w + 2 * n + y);
  kernels_->linear_forward(bf16({t, k}), bf16({n, k}), {}, f32({t, n}), Accumulate::yes, *stream_);
  expect_product(flops, x + w + 2 * 2 * y);
  kernels_->linear_backward_input(bf16({t, n}), bf16({n, k}), bf16({t, k}), Accumulate::yes,
                                  *stream_);
  expect_product(flops, y + w + 2 * x);
  kernels_->linear_backward_weight(bf16({t, n}), bf16({t, k}), f32({n, k}), Accumulate::no,
                                   *stream_);
  expect_product(flops, y + x + 2 * w);
  kernels_->bias_backward(bf16({t, n}), bf16({n}), *stream_);
  expect_elementwise(y + 2 * n);
}

TEST_F(MetaKernelsTest, CountsRopeAsReadAndWrittenInPlace) {
  const std::array<float, 4> frequencies{};
  kernels_->rope(bf16({t, 3, 8}), i32({t}), frequencies, Rotation::inverse, *stream_);
  expect_elementwise(2 * 2 * t * 3 * 8 + 4 * t + 16);
}

TEST_F(MetaKernelsTest, CountsHalfOfTheSquarePerProductOfCausalAttention) {
  constexpr std::int64_t q = 4, g = 2, d = 8;
  AttentionArgs args;
  args.q_tqd = args.out_tqd = bf16({t, q, d});
  args.k_tgd = args.v_tgd = bf16({t, g, d});
  args.document_start_t = i32({t});
  args.lse_qt = f32({q, t});
  const std::int64_t product = t * t * q * d;
  const std::int64_t bytes = 2 * (2 * t * q * d + 2 * t * g * d) + 4 * t + 4 * q * t;
  kernels_->attention_forward(args, *stream_);
  expect_call(KernelClass::attention, DType::bf16, 2 * product, bytes);
  args.dout_tqd = args.dq_tqd = args.q_tqd;
  args.dk_tgd = args.dv_tgd = args.k_tgd;
  kernels_->attention_backward(args, *stream_);
  expect_call(KernelClass::attention, DType::bf16, 5 * product,
              bytes + 2 * (2 * t * q * d + 2 * t * g * d));
}

TEST_F(MetaKernelsTest, CountsTheOperandsOfElementwiseOps) {
  const TensorView x = bf16({t, n}), wide = f32({t, n});
  const std::int64_t count = t * n;
  kernels_->swiglu_forward(x, x, x, *stream_);
  expect_elementwise(3 * 2 * count);
  kernels_->swiglu_backward(x, x, x, x, x, *stream_);
  expect_elementwise(5 * 2 * count);
  kernels_->add(x, x, x, *stream_);
  expect_elementwise(3 * 2 * count);
  kernels_->cast(wide, x, *stream_);
  expect_elementwise(6 * count, DType::f32);
  kernels_->sum(f32({t}), tensor(DType::f64, {1}), *stream_);
  expect_elementwise(4 * t + 8, DType::f32);
}

TEST_F(MetaKernelsTest, CountsTheGradientOfLogitsWhereItIsAsked) {
  CrossEntropyArgs args;
  args.logits_cv = f32({t, n});
  args.labels_c = i32({t});
  args.losses_c = f32({t});
  kernels_->cross_entropy(args, *stream_);
  expect_elementwise(4 * t * n + 8 * t, DType::f32);
  args.dlogits_cv = bf16({t, n});
  kernels_->cross_entropy(args, *stream_);
  expect_elementwise(6 * t * n + 8 * t, DType::f32);
}

TEST_F(MetaKernelsTest, CountsTheOperandsOfTheExactFamily) {
  constexpr std::int64_t count = 8192;
  kernels_->cast_weight(f32({count}), bf16({count}), *stream_);
  expect_elementwise(6 * count, DType::f32);
  kernels_->accumulate(bf16({count}), f32({count}), Accumulate::no, *stream_);
  expect_elementwise(6 * count);
  kernels_->accumulate(bf16({count}), f32({count}), Accumulate::yes, *stream_);
  expect_elementwise(10 * count);
  kernels_->square_sums(bf16({count}), tensor(DType::f64, {2}), *stream_);
  expect_elementwise(2 * count + 16);
}

TEST_F(MetaKernelsTest, CountsStateThatAnUpdateReadsAndWrites) {
  constexpr std::int64_t count = 4096;
  UpdateArgs args;
  args.gradient = args.weight = bf16({count});
  args.master = args.moment1 = args.moment2 = f32({count});
  kernels_->update(args, *stream_);
  expect_elementwise(count * (2 + 3 * 8 + 2));
  args.rule = UpdateRule::sgd;  // Keeps no second moment.
  kernels_->update(args, *stream_);
  expect_elementwise(count * (2 + 2 * 8 + 2));
  args.master = tensor(DType::u16, {count});  // The weight is its other half: read too.
  args.non_finite = tensor(DType::f64, {1});
  kernels_->update(args, *stream_);
  expect_elementwise(count * (2 + 4 + 8 + 4) + 16);
}

TEST_F(MetaKernelsTest, MergesEqualCallsAndTellsOthersApart) {
  const TensorView x = bf16({t, n}), y = bf16({t, k});
  for (const TensorView& operand : {x, y, x, x}) {
    kernels_->add(operand, operand, operand, *stream_);
  }
  ASSERT_THAT(calls_, SizeIs(2));
  EXPECT_EQ(calls_[0].calls, 3);
  EXPECT_EQ(calls_[1].calls, 1);
  EXPECT_EQ(calls_[1].bytes, 3 * 2 * t * k);
}

TEST_F(MetaKernelsTest, NeedsTheScratchOfTheKernelsItStandsFor) {
  const auto cpu = make_cpu_kernels({.num_threads = 1});
  const auto meta = make_meta_kernels(*cpu, calls_);
  EXPECT_GT(meta->attention_scratch_bytes(64, 4, 2, 16), 0u);
  EXPECT_EQ(meta->attention_scratch_bytes(64, 4, 2, 16),
            cpu->attention_scratch_bytes(64, 4, 2, 16));
  EXPECT_EQ(meta->rmsnorm_scratch_bytes(64, 32), cpu->rmsnorm_scratch_bytes(64, 32));
  EXPECT_EQ(meta->embedding_scratch_bytes(64, 99, 32), cpu->embedding_scratch_bytes(64, 99, 32));
}

}  // namespace
}  // namespace strata
