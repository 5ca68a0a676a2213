#include "strata/core/digits.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace strata {
namespace {

TEST(ThreeDigits, AreSignificant) {
  EXPECT_EQ(three_digits(3.456), "3.46");
  EXPECT_EQ(three_digits(34.56), "34.6");
  EXPECT_EQ(three_digits(345.6), "346");
  EXPECT_EQ(three_digits(0.01234), "0.0123");
  EXPECT_EQ(three_digits(0), "0");
  EXPECT_EQ(three_digits(-2.5), "-2.50");
}

TEST(ThreeDigits, CarryOver) {
  EXPECT_EQ(three_digits(9.999), "10.0");
  EXPECT_EQ(three_digits(99.96), "100");
  EXPECT_EQ(three_digits(0.09999), "0.100");
  EXPECT_EQ(three_digits(0.001), "0.00100");
}

TEST(ThreeDigits, UseAnExponentFarFromOne) {
  EXPECT_EQ(three_digits(1.234e9), "1.23e+09");
  EXPECT_EQ(three_digits(1.234e-9), "1.23e-09");
  EXPECT_EQ(three_digits(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(three_digits(std::numeric_limits<double>::infinity()), "inf");
}

}  // namespace
}  // namespace strata
