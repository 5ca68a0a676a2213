#include <cmath>
#include <limits>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class CrossEntropyContract : public KernelsContract {
 protected:
  struct Case {
    Tensor logits_cv, labels_c, losses_c, dlogits_cv;
    double scale;
    CrossEntropyArgs args() const { return {logits_cv, labels_c, scale, losses_c, dlogits_cv}; }
  };

  // Every fifth token is not trained.
  Case make_case(std::int64_t c, std::int64_t v) {
    std::vector<std::int32_t> labels;
    for (std::int64_t row = 0; row < c; ++row) {
      const auto label =
          static_cast<std::int32_t>(random_.next_below(static_cast<std::uint64_t>(v)));
      labels.push_back(row % 5 == 4 ? -100 : label);
    }
    return {random_normal(random_, DType::f32, {c, v}, 3), integers(labels),
            Tensor(DType::f32, {c}), Tensor(dtype(), {c, v}), 1.0 / 7};
  }
  Case in_double(const Case& c) {
    return {converted(c.logits_cv, DType::f64), c.labels_c,
            Tensor(DType::f64, c.losses_c.view().shape),
            Tensor(DType::f64, c.dlogits_cv.view().shape), c.scale};
  }

  PhiloxStream random_{14, 0};
};

TEST_P(CrossEntropyContract, GivesLossesAndGradients) {
  for (std::int64_t c : {1, 3, 17, 130}) {
    for (std::int64_t v : {1, 5, 97, 5003}) {
      const Case actual = make_case(c, v), expected = in_double(actual);
      oracle().cross_entropy(expected.args(), stream());
      kernels().cross_entropy(actual.args(), stream());
      expect_close(actual.losses_c, expected.losses_c, "losses");
      expect_close(actual.dlogits_cv, expected.dlogits_cv, "dlogits");
    }
  }
}

TEST_P(CrossEntropyContract, GivesTheLossAloneWithoutAGradient) {
  const Case actual = make_case(17, 301), expected = in_double(actual);
  CrossEntropyArgs args = actual.args();
  args.dlogits_cv = {};
  oracle().cross_entropy(expected.args(), stream());
  kernels().cross_entropy(args, stream());
  expect_close(actual.losses_c, expected.losses_c, "losses");
}

TEST_P(CrossEntropyContract, AddsNothingForUntrainedTokens) {
  const Case c = make_case(5, 97);
  kernels().cross_entropy(c.args(), stream());
  EXPECT_EQ(c.losses_c.at(4), 0);
  for (std::int64_t j = 0; j < 97; ++j) EXPECT_EQ(c.dlogits_cv.at(4 * 97 + j), 0);
}

TEST_P(CrossEntropyContract, WritesTheGradientOverF32Logits) {
  const Case actual = make_case(17, 301), expected = in_double(actual);
  CrossEntropyArgs args = actual.args();
  args.dlogits_cv = args.logits_cv;
  oracle().cross_entropy(expected.args(), stream());
  kernels().cross_entropy(args, stream());
  expect_close(actual.logits_cv, expected.dlogits_cv, "dlogits");
}

TEST_P(CrossEntropyContract, SurvivesLargeAndMinusInfiniteLogits) {
  Case c = make_case(1, 37);
  for (std::int64_t j = 0; j < 37; ++j)
    c.logits_cv.set(j, j % 2 == 0 ? 3e38 : -std::numeric_limits<double>::infinity());
  c.labels_c.set(0, 2);
  kernels().cross_entropy(c.args(), stream());
  EXPECT_NEAR(c.losses_c.at(0), c.scale * std::log(19), 1e-6);
  EXPECT_EQ(c.dlogits_cv.at(1), 0);
}

TEST_P(CrossEntropyContract, NeverHidesANan) {
  for (std::int64_t at : {0, 20, 36}) {
    Case c = make_case(1, 37);
    c.labels_c.set(0, 5);
    c.logits_cv.set(at, std::numeric_limits<double>::quiet_NaN());
    kernels().cross_entropy(c.args(), stream());
    EXPECT_TRUE(std::isnan(c.losses_c.at(0))) << at;
    EXPECT_TRUE(std::isnan(c.dlogits_cv.at(6))) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, CrossEntropyContract, every_case(), case_name);

}  // namespace
}  // namespace strata::testing
