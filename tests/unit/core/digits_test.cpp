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

TEST(Scaled, CountsInThousands) {
  EXPECT_EQ(scaled(0, "B"), "0 B");
  EXPECT_EQ(scaled(999.4, "B"), "999 B");
  EXPECT_EQ(scaled(999.6, "B"), "1.00 kB");
  EXPECT_EQ(scaled(141.1e9, "B"), "141 GB");
  EXPECT_EQ(scaled(1.534e9, "B/s"), "1.53 GB/s");
  EXPECT_EQ(scaled(38.55e12, "FLOP/s"), "38.5 TFLOP/s");
  EXPECT_EQ(scaled(1e21, "B"), "1000 EB");
}

}  // namespace
}  // namespace strata
