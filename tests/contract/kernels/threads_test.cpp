// The cpu kernels' results depend neither on the number of threads nor on their nodes, to the bit,
// also for the ops that sum.

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class CpuThreads : public ::testing::TestWithParam<DType> {
 protected:
  // `run` returns the bits of all that an op writes.
  template <typename F>
  void expect_same_bits(F run) {
    const std::string expected = run(*make_cpu_kernels({.num_threads = 1}));
    for (const std::vector<int>& threads_of_node :
         std::vector<std::vector<int>>{{2}, {5}, {1, 1}, {3, 1, 2}}) {
      const auto kernels = make_cpu_kernels({.threads_of_node = threads_of_node});
      for (int repeat = 0; repeat < 3; ++repeat)
        EXPECT_TRUE(run(*kernels) == expected) << ::testing::PrintToString(threads_of_node);
    }
  }
  Tensor normal(Shape shape) { return random_normal(random_, GetParam(), shape); }
  Stream& stream() { return host_stream(); }
  PhiloxStream random_{41, 0};
};

TEST_P(CpuThreads, DoNotChangeEmbeddingBackward) {
  std::vector<std::int32_t> tokens;
  for (int t = 0; t < 300; ++t) tokens.push_back(t * t % 199);
  const Tensor tokens_t = integers(tokens), dout_th = normal({300, 37});
  expect_same_bits([&](Kernels& kernels) {
    const Tensor dtable_vh(GetParam(), {200, 37});
    Scratch scratch(kernels.embedding_scratch_bytes(300, 200, 37));
    kernels.embedding_backward(tokens_t, dout_th, dtable_vh, scratch.span(), stream());
    return dtable_vh.bits();
  });
}

TEST_P(CpuThreads, DoNotChangeRmsNormBackward) {
  const Tensor x_th = normal({130, 576}), w_h = normal({576}), dy_th = normal({130, 576});
  expect_same_bits([&](Kernels& kernels) {
    const Tensor y_th(GetParam(), {130, 576}), rstd_t(DType::f32, {130}),
        dx_th(GetParam(), {130, 576});
    const Tensor dw_h(GetParam(), {576});
    Scratch scratch(kernels.rmsnorm_scratch_bytes(130, 576));
    kernels.rmsnorm_forward(x_th, w_h, 1e-5f, y_th, rstd_t, stream());
    kernels.rmsnorm_backward(dy_th, x_th, w_h, rstd_t, dx_th, Accumulate::no, dw_h, scratch.span(),
                             stream());
    return y_th.bits() + rstd_t.bits() + dx_th.bits() + dw_h.bits();
  });
}

TEST_P(CpuThreads, DoNotChangeCrossEntropy) {
  PhiloxStream random(42, 0);
  const Tensor logits = random_normal(random, DType::f32, {17, 9001}, 3);
  const Tensor labels_c = integers(std::vector<std::int32_t>(17, 77));
  expect_same_bits([&](Kernels& kernels) {
    const Tensor logits_cv = copy_of(logits), losses_c(DType::f32, {17}),
                 dlogits_cv(GetParam(), {17, 9001});
    kernels.cross_entropy({logits_cv, labels_c, 0.5, losses_c, dlogits_cv}, stream());
    return losses_c.bits() + dlogits_cv.bits();
  });
}

TEST_P(CpuThreads, DoNotChangeLinearBackward) {
  const Tensor dy_tn = normal({150, 700}), x_tk = normal({150, 96});
  expect_same_bits([&](Kernels& kernels) {
    const Tensor dw_nk(GetParam(), {700, 96});
    kernels.linear_backward_weight(dy_tn, x_tk, dw_nk, Accumulate::no, stream());
    return dw_nk.bits();
  });
}

TEST_P(CpuThreads, DoNotChangeSquareSums) {
  const Tensor values = normal({300'007});
  expect_same_bits([&](Kernels& kernels) {
    const Tensor partials(DType::f64, {74});
    kernels.square_sums(values, partials, stream());
    return partials.bits();
  });
}

INSTANTIATE_TEST_SUITE_P(Kernels, CpuThreads, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

}  // namespace
}  // namespace strata::testing
