// Training with smaller optimizer state: a split master changes nothing, rounded moments little.

#include <gtest/gtest.h>

#include "unit/kernels/noisy_quadratic.hpp"

namespace strata::testing {
namespace {

// What each rule is trained with, and by how much rounded moments may change the loss it ends with.
struct Gap {
  UpdateRule rule;
  double learning_rate, bf16, q8;
  std::string name;
};

const Gap gaps[] = {{UpdateRule::adamw, 2e-2, 0.01, 0.03, "adamw"},
                    {UpdateRule::adam, 2e-2, 0.01, 0.03, "adam"},
                    {UpdateRule::sgd, 1e-3, 0.01, 0.03, "sgd"},
                    // Steps by the sign of the moment, so a rounded one changes whole steps.
                    {UpdateRule::lion, 5e-3, 0.1, 0.25, "lion"}};

NoisyQuadratic trained(const Gap& gap, DType master, DType moments) {
  NoisyQuadratic problem({gap.rule, master, moments});
  problem.train(*make_cpu_kernels({.num_threads = 1}), 1000, gap.learning_rate);
  return problem;
}

class SmallState : public ::testing::TestWithParam<Gap> {};
INSTANTIATE_TEST_SUITE_P(Rules, SmallState, ::testing::ValuesIn(gaps),
                         [](const auto& test) { return test.param.name; });

TEST_P(SmallState, EndsAThousandStepsNearFp32State) {
  const NoisyQuadratic whole = trained(GetParam(), DType::f32, DType::f32);
  EXPECT_LT(whole.loss(), 0.1 * NoisyQuadratic({}).loss());
  const NoisyQuadratic bf16 = trained(GetParam(), DType::u16, DType::bf16);
  EXPECT_NEAR(bf16.loss() / whole.loss(), 1, GetParam().bf16);
  const NoisyQuadratic q8 = trained(GetParam(), DType::u16, DType::q8);
  EXPECT_NEAR(q8.loss() / whole.loss(), 1, GetParam().q8);
  EXPECT_LT(q8.largest(), 1.5 * whole.largest());
  if (has_moment2(GetParam().rule)) {
    EXPECT_EQ(q8.num_without_moment2(), 0);
  }
}

TEST_P(SmallState, GivesTheSameWeightsWithASplitMaster) {
  for (DType moments : {DType::f32, DType::bf16, DType::q8}) {
    const NoisyQuadratic whole = trained(GetParam(), DType::f32, moments),
                         split = trained(GetParam(), DType::u16, moments);
    for (std::int64_t i = 0; i < NoisyQuadratic::count; ++i)
      ASSERT_EQ(split.value(i), whole.value(i)) << dtype_name(moments) << " element " << i;
    EXPECT_TRUE(split.weights() == whole.weights());
  }
}

}  // namespace
}  // namespace strata::testing
