// Embedding and cross-entropy of kernels/cuda beyond the contract suites: rows wider than a block,
// long runs of one token, the same bits under every order.

#include <cmath>

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class CudaTokens : public ::testing::Test {
 protected:
  Tensor random_tokens(std::int64_t t, std::uint64_t v) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < t; ++i)
      tokens.push_back(static_cast<std::int32_t>(random_.next_below(v)));
    return integers(tokens);
  }
  void embedding_backward(Kernels& kernels, const Tensor& tokens, const Tensor& dout,
                          const Tensor& dtable) {
    const std::int64_t v = dtable.view().dim(0), h = dtable.view().dim(1);
    Scratch scratch(kernels.embedding_scratch_bytes(tokens.count(), v, h));
    kernels.embedding_backward(tokens, dout, dtable, scratch.span(), host_stream());
  }
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
  PhiloxStream random_{71, 0};
};

TEST_F(CudaTokens, SumTheGradientsOfRowsWiderThanABlock) {
  for (std::int64_t h : {2048, 2051, 2304}) {
    const Tensor tokens = random_tokens(20, 5), dout = random_normal(random_, DType::bf16, {20, h}),
                 dtable(DType::bf16, {7, h}), expected(DType::f64, {7, h});
    embedding_backward(*make_kernels_under_test(1), tokens, dout, dtable);
    ref_->embedding_backward(tokens, dout, expected, {}, host_stream());
    expect_close(dtable, expected, "dtable of rows of " + std::to_string(h));
  }
}

// In fp32 and in token order, as a plain loop would.
TEST_F(CudaTokens, SumTheGradientsInTokenOrder) {
  const std::int64_t t = 700, h = 24;
  const Tensor tokens = random_tokens(t, 3), dout = random_normal(random_, DType::f32, {t, h});
  std::vector<float> sums(3 * h, 0.0f);
  for (std::int64_t i = 0; i < t * h; ++i) {
    const auto row = static_cast<std::int64_t>(tokens.at(i / h));
    sums[static_cast<std::size_t>(row * h + i % h)] += dout.view().as<float>()[i];
  }
  for (std::uint64_t seed : {0u, 1u, 2u}) {
    const Tensor dtable(DType::f32, {3, h});
    embedding_backward(*make_kernels_under_test(seed), tokens, dout, dtable);
    for (std::int64_t i = 0; i < 3 * h; ++i)
      ASSERT_EQ(dtable.view().as<float>()[i], sums[static_cast<std::size_t>(i)]);
  }
}

TEST_F(CudaTokens, CopyRowsFromEveryAddress) {
  const Tensor table = random_normal(random_, DType::bf16, {9, 2056}), tokens = random_tokens(6, 9);
  for (std::int64_t offset : {0, 1, 8}) {
    const Tensor out(DType::bf16, {6, 2056}, offset);
    make_kernels_under_test(2)->embedding_forward(tokens, table, out, host_stream());
    for (std::int64_t i = 0; i < out.count(); ++i) {
      const auto row = static_cast<std::int64_t>(tokens.at(i / 2056));
      ASSERT_EQ(out.at(i), table.at(row * 2056 + i % 2056));
    }
  }
}

TEST_F(CudaTokens, LossesHaveTheSameBitsUnderEveryOrder) {
  const std::int64_t c = 5, v = 4099;
  const Tensor logits = random_normal(random_, DType::f32, {c, v}, 4);
  const Tensor labels = integers({7, -1, 4098, 0, 100});
  std::string first;
  for (std::uint64_t seed : {0u, 1u, 2u}) {
    const Tensor scratch = copy_of(logits), losses(DType::f32, {c}),
                 dlogits(DType::bf16, {c, v}, static_cast<std::int64_t>(seed));
    make_kernels_under_test(seed)->cross_entropy({scratch, labels, 0.25, losses, dlogits},
                                                 host_stream());
    const std::string bits = losses.bits() + dlogits.bits();
    if (seed == 0) first = bits;
    EXPECT_TRUE(bits == first) << "seed " << seed;
  }
}

}  // namespace
}  // namespace strata::testing
