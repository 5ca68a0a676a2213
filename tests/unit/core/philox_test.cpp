#include "strata/core/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace strata {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxStream, IsAFunctionOfSeedStreamAndPosition) {
  PhiloxStream a(7, 1), same(7, 1), other_stream(7, 2), other_seed(8, 1);
  for (int i = 0; i < 9; ++i) {
    const std::uint32_t value = a.next_u32();
    EXPECT_EQ(same.next_u32(), value);
    EXPECT_NE(other_stream.next_u32(), value);
    EXPECT_NE(other_seed.next_u32(), value);
  }
  PhiloxStream copy = a;
  EXPECT_EQ(copy.next_u64(), a.next_u64());
}

TEST(PhiloxStream, BeginsWithTheFirstBlock) {
  PhiloxStream stream(0, 0);
  EXPECT_EQ(stream.next_u32(), 0x6627e8d5u);
  EXPECT_EQ(stream.next_u32(), 0xe169c58du);
}

TEST(PhiloxStream, FillsARangeEvenly) {
  PhiloxStream random(1, 0);
  std::array<int, 10> seen{};
  for (int i = 0; i < 10000; ++i) ++seen[random.next_below(10)];
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(PhiloxStream, GivesNormalNumbersOfMeanZeroAndDeviationOne) {
  PhiloxStream random(2, 0);
  double sum = 0, squares = 0;
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i) {
    const double x = random.next_normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x, squares += x * x;
  }
  EXPECT_NEAR(sum / count, 0, 0.03);
  EXPECT_NEAR(squares / count, 1, 0.05);
}

TEST(PhiloxStream, GivesUniformNumbersBelowOne) {
  PhiloxStream random(3, 0);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double x = random.next_uniform();
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

}  // namespace
}  // namespace strata
