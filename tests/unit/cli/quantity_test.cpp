#include "src/cli/quantity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;

std::string quantity_error_of(const std::string& text, Quantity quantity) {
  try {
    parse_quantity(text, quantity);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Quantity, ReadsNumbersWithTheirUnits) {
  EXPECT_EQ(parse_quantity("54.8 GB/s", Quantity::bytes_per_s), 54.8e9);
  EXPECT_EQ(parse_quantity("54.8GB/s", Quantity::bytes_per_s), 54.8e9);
  EXPECT_EQ(parse_quantity(" 12 B/s ", Quantity::bytes_per_s), 12);
  EXPECT_EQ(parse_quantity("989 TFLOP/s", Quantity::flops_per_s), 989e12);
  EXPECT_EQ(parse_quantity("4 GFLOP", Quantity::flops), 4e9);
  EXPECT_EQ(parse_quantity("2.4 Gparam/s", Quantity::params_per_s), 2.4e9);
  EXPECT_EQ(parse_quantity("5 us", Quantity::seconds), 5e-6);
  EXPECT_EQ(parse_quantity("0.5", Quantity::ratio), 0.5);
}

TEST(Quantity, ReadsSizesAsConfigsDo) {
  EXPECT_EQ(parse_quantity("73.6 GB", Quantity::bytes), 73.6e9);
  EXPECT_EQ(parse_quantity("1TiB", Quantity::bytes), 1024.0 * 1024 * 1024 * 1024);
}

TEST(Quantity, RefusesWhatIsNoQuantity) {
  EXPECT_THAT(quantity_error_of("54.8", Quantity::bytes_per_s), HasSubstr("no unit"));
  EXPECT_THAT(quantity_error_of("1e9", Quantity::bytes), HasSubstr("no unit"));
  EXPECT_THAT(quantity_error_of("54.8 GB", Quantity::bytes_per_s), HasSubstr("unknown unit 'GB'"));
  EXPECT_THAT(quantity_error_of("54.8 GB/s", Quantity::bytes), HasSubstr("no unit"));
  EXPECT_THAT(quantity_error_of("5 ms", Quantity::ratio), HasSubstr("unknown unit 'ms'"));
  EXPECT_THAT(quantity_error_of("fast", Quantity::bytes_per_s),
              HasSubstr("does not begin with a number"));
  EXPECT_THAT(quantity_error_of("", Quantity::seconds), HasSubstr("does not begin with a number"));
  EXPECT_THAT(quantity_error_of("-1 GB/s", Quantity::bytes_per_s), HasSubstr("negative"));
  EXPECT_THAT(quantity_error_of("nan GB/s", Quantity::bytes_per_s), HasSubstr("not finite"));
  EXPECT_THAT(quantity_error_of("inf s", Quantity::seconds), HasSubstr("not finite"));
  EXPECT_THAT(quantity_error_of("1e300 EB/s", Quantity::bytes_per_s), HasSubstr("more than"));
  EXPECT_THAT(quantity_error_of("1e400 B/s", Quantity::bytes_per_s), HasSubstr("number"));
  EXPECT_THAT(quantity_error_of("1e300 GB", Quantity::bytes), HasSubstr("too large"));
  EXPECT_THAT(quantity_error_of("nan GB", Quantity::bytes), HasSubstr("not a size"));
  EXPECT_THAT(quantity_error_of("-1 GB", Quantity::bytes), HasSubstr("negative"));
}

TEST(Quantity, SaysWhatCouldBeWritten) {
  EXPECT_THAT(quantity_error_of("54.8", Quantity::bytes_per_s), HasSubstr("write 54.8 GB/s"));
}

TEST(Quantity, WritesTheLargestUnitThatReadsBack) {
  EXPECT_EQ(format_quantity(54.8e9, Quantity::bytes_per_s), "54.8 GB/s");
  EXPECT_EQ(format_quantity(613.18e12, Quantity::flops_per_s), "613.18 TFLOP/s");
  EXPECT_EQ(format_quantity(7e15, Quantity::bytes), "7000 TB");
  EXPECT_EQ(format_quantity(0.75, Quantity::ratio), "0.75");
  EXPECT_EQ(format_quantity(5e-6, Quantity::seconds), "5 us");
  EXPECT_EQ(format_quantity(0, Quantity::seconds), "0 s");
}

TEST(Quantity, ReadsBackWhatItWrote) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0, 15);
  for (int i = 0; i < 2000; ++i) {
    const double rate = std::pow(10.0, exponent(random)), size = std::floor(rate);
    EXPECT_EQ(parse_quantity(format_quantity(rate, Quantity::flops), Quantity::flops), rate);
    EXPECT_EQ(parse_quantity(format_quantity(size, Quantity::bytes), Quantity::bytes), size);
    const double seconds = rate * 1e-16;
    EXPECT_EQ(parse_quantity(format_quantity(seconds, Quantity::seconds), Quantity::seconds),
              seconds);
  }
}

}  // namespace
}  // namespace strata
