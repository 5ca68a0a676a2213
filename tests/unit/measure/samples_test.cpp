#include "strata/measure/samples.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace strata {
namespace {

TEST(Samples, OfNoValuesAreZero) {
  EXPECT_TRUE(Samples{}.empty());
  EXPECT_EQ(Samples{}.median(), 0);
  EXPECT_EQ(Samples{}.min(), 0);
  EXPECT_EQ(Samples{}.max(), 0);
  EXPECT_EQ(Samples{}.stdev(), 0);
}

TEST(Samples, HaveTheMiddleOneAsMedianWhateverTheirOrder) {
  EXPECT_EQ((Samples{{9, 1, 5}}.median()), 5);
  EXPECT_EQ((Samples{{9, 1, 5, 7}}.median()), 6);
  EXPECT_EQ((Samples{{4}}.median()), 4);
}

TEST(Samples, HaveExtremesAndTheDeviationOfASample) {
  const Samples samples{{2, 4, 4, 4, 5, 5, 7, 9}};
  EXPECT_EQ(samples.min(), 2);
  EXPECT_EQ(samples.max(), 9);
  EXPECT_NEAR(samples.stdev(), std::sqrt(32.0 / 7), 1e-12);
  EXPECT_EQ((Samples{{3}}.stdev()), 0);
}

}  // namespace
}  // namespace strata
