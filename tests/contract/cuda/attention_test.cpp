// Attention of kernels/cuda, on tensor cores and without, against the reference in double: tiles of
// queries and keys whole and in part, documents that begin within, at and after them, groups of
// heads; the same bits under every order of blocks. Bounds: 2^-5 of an element or of the tensor's
// typical size, as probabilities and score gradients are rounded to bf16 for the products, and fp32
// 4e-6 for the log-sum-exps.

#include <cmath>

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/kernels/attention_tensors.hpp"

namespace strata::testing {
namespace {

std::vector<AttentionCase> cases() {
  return {{"one token", 1, 1, 1, 64, {0}},
          {"part of a tile", 37, 4, 2, 64, {0}},
          {"a tile", 64, 1, 1, 128, {0}},
          {"documents", 150, 2, 1, 64, {0, 1, 70, 128}},
          {"wide heads, documents", 131, 2, 2, 128, {0, 64, 100}},
          {"each token alone", 66, 1, 1, 64,
           [] {
             std::vector<std::int32_t> starts(66);
             for (std::size_t i = 0; i < 66; ++i) starts[i] = static_cast<std::int32_t>(i);
             return starts;
           }()},
          {"a document that skips tiles of keys", 200, 1, 1, 64, {0, 190}},
          {"a group of three heads", 70, 3, 1, 128, {0, 33}}};
}

struct AttentionData : AttentionTensors {
  AttentionData(const AttentionCase& c, std::uint64_t seed)
      : AttentionTensors(c, DType::bf16, seed) {}
  // With other storage; results are not taken along.
  AttentionData stored(DType dtype) const {
    AttentionData wide = *this;
    for (Tensor* tensor :
         {&wide.q, &wide.k, &wide.v, &wide.dout, &wide.out, &wide.dq, &wide.dk, &wide.dv})
      *tensor = converted(*tensor, dtype);
    wide.lse = Tensor(dtype == DType::f64 ? DType::f64 : DType::f32, lse.view().shape);
    wide.starts = copy_of(starts);
    return wide;
  }
  std::string bits() const { return out.bits() + lse.bits() + dq.bits() + dk.bits() + dv.bits(); }
};

void run(Kernels& kernels, const AttentionData& data) {
  const Shape& q = data.q.view().shape;
  Scratch scratch(kernels.attention_scratch_bytes(q[0], q[1], data.k.view().dim(1), q[2]));
  kernels.attention_forward(data.args({}), host_stream());
  kernels.attention_backward(data.args(scratch.span()), host_stream());
}

void expect_agreement(const AttentionCase& c, const AttentionData& actual, double tolerance) {
  const AttentionData expected = actual.stored(DType::f64);
  run(*make_kernels_under_test(), actual);
  run(*make_ref_kernels(), expected);
  expect_near(actual.out, expected.out, c.name + ", out", tolerance);
  expect_close(actual.lse, expected.lse, c.name + ", lse");
  expect_near(actual.dq, expected.dq, c.name + ", dq", tolerance);
  expect_near(actual.dk, expected.dk, c.name + ", dk", tolerance);
  expect_near(actual.dv, expected.dv, c.name + ", dv", tolerance);
}

TEST(CudaAttention, AgreesWithTheReference) {
  for (const AttentionCase& c : cases()) expect_agreement(c, AttentionData(c, 61), 0x1p-5);
}

// Of a tensor, as a whole.
double relative_error(const Tensor& actual, const Tensor& expected) {
  double error = 0, size = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double difference = actual.at(i) - expected.at(i);
    error += difference * difference;
    size += expected.at(i) * expected.at(i);
  }
  return std::sqrt(error / size);
}

// Two sequences side by side and heads in groups, as a model has them. Of so many elements some are
// far off, so each tensor is looked at as a whole: rounding to bf16 makes an error of 2^-9.
TEST(CudaAttention, AgreesWithTheReferenceForLongSequences) {
  const std::int64_t first = is_on_gpu() ? 1000 : 70, t = first + first / 2 + 7;
  const std::int64_t heads = is_on_gpu() ? 4 : 2;
  const auto second = static_cast<std::int32_t>(first);
  for (const AttentionCase& c :
       {AttentionCase{"heads of 64", t, heads, 2, 64, {0, second}},
        AttentionCase{"heads of 128", t, heads, 1, 128, {0, second}},
        AttentionCase{
            "documents", t, 2, 1, 128, {0, second / 3, second / 2, second, second + 3}}}) {
    SCOPED_TRACE(c.name);
    const AttentionData actual(c, 66), expected = actual.stored(DType::f64);
    run(*make_kernels_under_test(), actual);
    run(*make_ref_kernels(), expected);
    expect_close(actual.lse, expected.lse, "lse");
    EXPECT_LE(relative_error(actual.out, expected.out), 0x1p-7);
    EXPECT_LE(relative_error(actual.dq, expected.dq), 0x1p-6);
    EXPECT_LE(relative_error(actual.dk, expected.dk), 0x1p-6);
    EXPECT_LE(relative_error(actual.dv, expected.dv), 0x1p-7);
  }
}

// --- Without tensor cores

std::vector<AttentionCase> plain_cases() {
  return {{"one token", 1, 1, 1, 8, {0}},
          {"odd sizes", 37, 6, 2, 6, {0, 11}},
          {"heads of 80", 20, 2, 1, 80, {0, 1, 7}},
          {"heads of 160", 9, 1, 1, 160, {0}}};
}

// Backward reads an out that was rounded to bf16; in fp32 sums are of numbers near 1.
TEST(PlainAttention, AgreesWithTheReferenceInFp32AndForOtherHeads) {
  for (const AttentionCase& c : plain_cases()) {
    expect_agreement(c, AttentionData(c, 65).stored(DType::f32), 1e-5);
    expect_agreement(c, AttentionData(c, 65), 0x1p-5);
  }
}

// --- Either

TEST(CudaAttention, HasTheSameBitsUnderEveryOrder) {
  const std::int64_t t = is_on_gpu() ? 1100 : 80;
  for (std::int64_t d : {64, 128}) {
    const AttentionCase c{"order", t, 2, 1, d, {0, 70}};
    std::string first;
    for (std::uint64_t seed : {0u, 1u, 2u}) {
      const AttentionData data(c, 62);
      run(*make_kernels_under_test(seed), data);
      if (seed == 0) first = data.bits();
      EXPECT_TRUE(data.bits() == first) << "seed " << seed;
    }
  }
}

// What a token sees is its document: other documents' bits do not reach it.
TEST(CudaAttention, KeepsDocumentsApart) {
  const AttentionCase c{"apart", 100, 1, 1, 64, {0, 60}};
  const AttentionData one(c, 63);
  AttentionData other = one;
  for (Tensor* tensor : {&other.q, &other.k, &other.v, &other.dout}) *tensor = copy_of(*tensor);
  for (Tensor* result : {&other.out, &other.dq, &other.dk, &other.dv})
    *result = Tensor(DType::bf16, result->view().shape);
  other.lse = Tensor(DType::f32, {1, 100});
  const double huge = 1e4;
  for (std::int64_t i = 0; i < 60 * 64; ++i) other.v.set(i, huge), other.k.set(i, -huge);
  run(*make_kernels_under_test(3), one);
  run(*make_kernels_under_test(4), other);
  for (std::int64_t i = 60 * 64; i < 100 * 64; ++i) {
    ASSERT_EQ(one.out.at(i), other.out.at(i));
    ASSERT_EQ(one.dq.at(i), other.dq.at(i));
    ASSERT_EQ(one.dk.at(i), other.dk.at(i));
  }
}

TEST(CudaAttention, IsStableForLargeScores) {
  const AttentionCase c{"large", 130, 1, 1, 64, {0}};
  AttentionData actual(c, 64);
  for (std::int64_t i = 0; i < actual.q.count(); ++i) actual.q.set(i, actual.q.at(i) * 30);
  const AttentionData expected = actual.stored(DType::f64);
  make_kernels_under_test(2)->attention_forward(actual.args({}), host_stream());
  make_ref_kernels()->attention_forward(expected.args({}), host_stream());
  expect_near(actual.out, expected.out, "out", 0x1p-5);
  expect_close(actual.lse, expected.lse, "lse");
}

}  // namespace
}  // namespace strata::testing
