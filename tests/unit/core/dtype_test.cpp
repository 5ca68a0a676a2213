#include "strata/core/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace strata {
namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Bfloat16, RoundsActivationsToNearestEven) {
  EXPECT_EQ(to_bfloat16(from_bits(0x3f808000)).bits, 0x3f80);  // a tie goes to the even neighbour
  EXPECT_EQ(to_bfloat16(from_bits(0x3f818000)).bits, 0x3f82);
  EXPECT_EQ(to_bfloat16(from_bits(0x3f808001)).bits, 0x3f81);
  EXPECT_EQ(to_bfloat16(from_bits(0x3f807fff)).bits, 0x3f80);
  EXPECT_EQ(to_bfloat16(from_bits(0xbf818000)).bits, 0xbf82);
}

TEST(Bfloat16, RoundsWorkingWeightsHalfUpInMagnitude) {
  EXPECT_EQ(weight_to_bfloat16(from_bits(0x3f808000)).bits, 0x3f81);
  EXPECT_EQ(weight_to_bfloat16(from_bits(0xbf808000)).bits, 0xbf81);
  EXPECT_EQ(weight_to_bfloat16(from_bits(0x3f807fff)).bits, 0x3f80);
}

TEST(Bfloat16, KeepsNotANumberAndOverflowsToInfinity) {
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(from_bits(0x7f800001)))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(to_float(to_bfloat16(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::infinity());
  EXPECT_EQ(to_float(to_bfloat16(-std::numeric_limits<float>::infinity())),
            -std::numeric_limits<float>::infinity());
}

TEST(Bfloat16, GivesBackWhatItHolds) {
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const bfloat16 value{static_cast<std::uint16_t>(bits)};
    ASSERT_EQ(to_bfloat16(to_float(value)), value);
    ASSERT_EQ(weight_to_bfloat16(to_float(value)), value);
  }
}

TEST(SplitMaster, InvertsTheRoundingOfTheWorkingWeight) {
  for (const std::uint32_t high : {0x0000u, 0x3f80u, 0x7f7fu, 0x8000u, 0xbf80u})
    for (std::uint32_t low = 0; low <= 0xffff; low += 0x101) {
      const std::uint32_t u = (high << 16) | low;
      const std::uint32_t hi = weight_to_bfloat16(from_bits(u)).bits;
      ASSERT_EQ(((hi - (low >> 15)) << 16) | low, u);
    }
}

TEST(Float16, ReadsNormalsDenormalsAndSpecials) {
  EXPECT_EQ(f16_to_float(0x3c00), 1.0f);
  EXPECT_EQ(f16_to_float(0xc100), -2.5f);
  EXPECT_EQ(f16_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(f16_to_float(0x0001), 0x1.0p-24f);
  EXPECT_EQ(f16_to_float(0x03ff), 1023 * 0x1.0p-24f);
  EXPECT_EQ(f16_to_float(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f16_to_float(0x7e00)));
  EXPECT_TRUE(std::signbit(f16_to_float(0x8000)));
}

TEST(DType, KnowsItsNameAndWidth) {
  EXPECT_EQ(dtype_bytes(DType::f64), 8);
  EXPECT_EQ(dtype_bytes(DType::bf16), 2);
  EXPECT_EQ(dtype_bytes(DType::u8), 1);
  EXPECT_EQ(dtype_name(DType::bf16), "bf16");
  EXPECT_EQ(dtype_name(DType::i32), "i32");
}

}  // namespace
}  // namespace strata
