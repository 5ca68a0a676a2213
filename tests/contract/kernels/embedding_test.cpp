#include <cmath>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class EmbeddingContract : public KernelsContract {
 protected:
  Tensor random_tokens(std::int64_t t, std::int64_t v) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t i = 0; i < t; ++i) {
      tokens.push_back(
          static_cast<std::int32_t>(random_.next_below(static_cast<std::uint64_t>(v))));
    }
    return integers(tokens);
  }
  PhiloxStream random_{11, 0};
};

TEST_P(EmbeddingContract, CopiesTheRowOfEachToken) {
  const Tensor table_vh = random_normal(random_, dtype(), {7, 37});
  const Tensor tokens_t = integers({6, 0, 6, 3});
  Tensor out_th(dtype(), {4, 37});
  kernels().embedding_forward(tokens_t, table_vh, out_th, stream());
  for (std::int64_t j = 0; j < 37; ++j) {
    EXPECT_EQ(out_th.at(0 * 37 + j), table_vh.at(6 * 37 + j));
    EXPECT_EQ(out_th.at(1 * 37 + j), table_vh.at(0 * 37 + j));
    EXPECT_EQ(out_th.at(2 * 37 + j), table_vh.at(6 * 37 + j));
    EXPECT_EQ(out_th.at(3 * 37 + j), table_vh.at(3 * 37 + j));
  }
}

TEST_P(EmbeddingContract, SumsTheGradientsOfRepeatedTokensAndZeroesTheRest) {
  for (std::int64_t t : {1, 3, 17, 130}) {
    for (std::int64_t v : {5, 200}) {
      const std::int64_t h = 37;
      const Tensor tokens_t = random_tokens(t, v);
      const Tensor dout_th = random_normal(random_, dtype(), {t, h});
      Tensor dtable_vh(dtype(), {v, h}), expected_vh(DType::f64, {v, h});
      Scratch scratch(kernels().embedding_scratch_bytes(t, v, h));
      kernels().embedding_backward(tokens_t, dout_th, dtable_vh, scratch.span(), stream());
      oracle().embedding_backward(tokens_t, converted(dout_th, DType::f64), expected_vh, {},
                                  stream());
      expect_close(dtable_vh, expected_vh, "dtable");
    }
  }
}

TEST_P(EmbeddingContract, SumsALongRunOfOneTokenInFp32) {
  const std::int64_t t = 1000;
  const Tensor tokens_t = integers(std::vector<std::int32_t>(t, 2));
  Tensor dout_th(dtype(), {t, 1}), dtable_vh(dtype(), {4, 1});
  for (std::int64_t i = 0; i < t; ++i) dout_th.set(i, 1);
  Scratch scratch(kernels().embedding_scratch_bytes(t, 4, 1));
  kernels().embedding_backward(tokens_t, dout_th, dtable_vh, scratch.span(), stream());
  EXPECT_EQ(dtable_vh.at(2), 1000);  // In bf16 the sum would stop at 256.
  EXPECT_EQ(dtable_vh.at(1), 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, EmbeddingContract, every_case(), case_name);

}  // namespace
}  // namespace strata::testing
