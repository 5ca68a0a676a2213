#include "src/measure/sustained_load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(IntervalRates, AreOfEachLaneAndInterval) {
  IntervalRates rates(1);
  rates.take({.seconds = 0.5, .lane_bytes = {50, 5}});
  rates.take({.seconds = 1.0, .lane_bytes = {100, 10}});
  rates.take({.seconds = 1.5, .lane_bytes = {110, 40}});
  rates.take({.seconds = 2.0, .lane_bytes = {120, 70}});
  ASSERT_EQ(rates.bytes_per_s().size(), 2u);
  EXPECT_THAT(rates.bytes_per_s()[0], ElementsAre(100, 20));
  EXPECT_THAT(rates.bytes_per_s()[1], ElementsAre(10, 60));
}

// A boundary noticed late moves none of the later ones, and no byte counts twice.
TEST(IntervalRates, KeepToTheClockWhenNoticedLate) {
  IntervalRates rates(1);
  rates.take({.seconds = 1.25, .lane_bytes = {125}});
  rates.take({.seconds = 2.0, .lane_bytes = {200}});
  rates.take({.seconds = 3.0, .lane_bytes = {300}});
  EXPECT_THAT(rates.bytes_per_s()[0],
              ElementsAre(DoubleNear(100, 1e-9), DoubleNear(100, 1e-9), DoubleNear(100, 1e-9)));
}

TEST(SustainedResult, HasKneeAndTheMediansOnItsSides) {
  const auto result =
      make_sustained_result(NvmePattern::write, "/d", 1, {7, 7, 8, 7, 7, 2, 2, 3, 2, 2, 2});
  EXPECT_EQ(result.knee, 5u);
  EXPECT_EQ(result.before_knee_bytes_per_s, 7);
  EXPECT_EQ(result.after_knee_bytes_per_s, 2);
  EXPECT_EQ(result.bytes_per_s.size(), 11u);
}

TEST(SustainedResult, WithoutKneeHasOneMedian) {
  const auto result = make_sustained_result(NvmePattern::write, "/d", 1, {7, 7, 8, 7, 7});
  EXPECT_FALSE(result.knee);
  EXPECT_EQ(result.before_knee_bytes_per_s, 7);
  EXPECT_EQ(result.after_knee_bytes_per_s, 7);
}

}  // namespace
}  // namespace strata
