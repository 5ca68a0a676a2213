#include "strata/measure/adam_passes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t count = 3 * 64 * 1024 + 4096;

std::vector<bfloat16> weights_of(const AdamPasses& passes) {
  return {passes.weight().begin(), passes.weight().end()};
}
AdamLayout layout_named(const std::string& name) {
  return parse_state_layout(name, UpdateRule::adamw);
}

TEST(AdamLayout, IsFoundByItsName) {
  for (const AdamLayout& layout : all_state_layouts(UpdateRule::lion))
    EXPECT_EQ(parse_state_layout(state_layout_name(layout), UpdateRule::lion), layout);
  EXPECT_EQ(all_state_layouts(UpdateRule::adamw).size(), 12u);
}

TEST(AdamLayout, OfAnotherNameIsRefusedWithTheKnownOnes) {
  try {
    layout_named("bf16/split/f16");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr("bf16/split/bf16"));
  }
}

TEST(AdamLayout, CountsTheBytesOfStateAndPass) {
  EXPECT_EQ(state_bytes(layout_named("f32/f32/f32")), 12);
  EXPECT_EQ(state_bytes(layout_named("bf16/split/f32")), 10);
  EXPECT_EQ(update_pass_bytes(layout_named("bf16/f32/f32")), 28);
  EXPECT_EQ(update_pass_bytes(layout_named("f32/f32/f32")), 30);
  EXPECT_EQ(update_pass_bytes(layout_named("bf16/split/bf16")), 18);
  EXPECT_NEAR(update_pass_bytes(layout_named("bf16/split/q8")), 14, 0.1);
}

TEST(AdamLayout, OfARuleWithOneMomentHoldsOne) {
  const AdamLayout lion = parse_state_layout("bf16/f32/f32", UpdateRule::lion);
  EXPECT_EQ(state_bytes(lion), 8);
  EXPECT_LT(adam_passes_bytes(lion, 1 << 24),
            adam_passes_bytes(layout_named("bf16/f32/f32"), 1 << 24));
}

class AdamPassesOf : public ::testing::TestWithParam<const char*> {};

TEST_P(AdamPassesOf, StepAgainstTheGradient) {
  AdamPasses passes(layout_named(GetParam()), count, 2);
  passes.norm();
  passes.update();
  const std::vector<bfloat16> weights = weights_of(passes);
  // The first step of Adam is the learning rate, whatever the gradient's size.
  EXPECT_NEAR(to_float(weights[0]), -1e-4, 2e-5);
  EXPECT_NEAR(to_float(weights[1]), 1e-4, 2e-5);
  EXPECT_NEAR(to_float(weights[count - 1]), 1e-4, 2e-5);
}

TEST_P(AdamPassesOf, AreNotDisturbedByTheirRooflines) {
  AdamPasses touched(layout_named(GetParam()), count, 2), plain(layout_named(GetParam()), count, 1);
  for (int step = 0; step < 3; ++step) {
    touched.touch_norm();
    touched.norm();
    plain.norm();
    touched.touch_update();
    touched.update();
    plain.update();
  }
  EXPECT_EQ(weights_of(touched), weights_of(plain));
}

INSTANTIATE_TEST_SUITE_P(Layouts, AdamPassesOf,
                         ::testing::Values("f32/f32/f32", "bf16/f32/f32", "bf16/split/f32",
                                           "f32/split/bf16", "bf16/split/q8"));

TEST(AdamPasses, WorkForEveryRule) {
  for (const UpdateRule rule : {UpdateRule::adam, UpdateRule::sgd, UpdateRule::lion}) {
    AdamPasses passes(parse_state_layout("bf16/split/f32", rule), count, 1);
    passes.touch_update();
    passes.update();
    EXPECT_NE(to_float(passes.weight()[0]), 0);
  }
}

}  // namespace
}  // namespace strata
