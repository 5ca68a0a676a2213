#include "src/train/save_cost.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(SaveCost, IsWhatTheStepsMeanwhileTakeMoreThanTheMedianOfThoseBefore) {
  SaveCost cost;
  for (const double seconds : {9.0, 1.0, 1.0, 1.5, 1.0}) cost.plain(seconds);
  cost.begin();
  cost.meanwhile(1.75);
  cost.meanwhile(1.25);
  const auto extra = cost.extra();
  ASSERT_TRUE(extra);
  EXPECT_EQ(extra->steps, 2);
  EXPECT_DOUBLE_EQ(extra->carrier_seconds, 0.75);
  EXPECT_DOUBLE_EQ(extra->seconds, 1.0);
}

TEST(SaveCost, ForgetsHowFastStepsOnceWere) {
  SaveCost cost;
  for (int i = 0; i < 20; ++i) cost.plain(1);
  for (int i = 0; i < 9; ++i) cost.plain(2);
  cost.begin();
  cost.meanwhile(2.5);
  EXPECT_DOUBLE_EQ(cost.extra()->carrier_seconds, 0.5);
}

TEST(SaveCost, IsNotKnownWhereThereIsNothingToCompareWith) {
  SaveCost cost;
  cost.begin();
  cost.meanwhile(1);
  EXPECT_FALSE(cost.extra());
  cost.plain(1);
  cost.begin();
  EXPECT_FALSE(cost.extra());
}

}  // namespace
}  // namespace strata
