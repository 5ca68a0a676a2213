// The split master: the working bf16 weight and the 16 low bits give back every fp32 bit.

#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "strata/core/dtype.hpp"
#include "strata/core/philox.hpp"

namespace strata {
namespace {

void expect_invertible(std::uint32_t master_bits) {
  const auto master = std::bit_cast<float>(master_bits);
  const float joined = join_master(weight_to_bfloat16(master), master_low_bits(master));
  ASSERT_EQ(std::bit_cast<std::uint32_t>(joined), master_bits);
}

TEST(SplitMaster, GivesBackEveryLowHalfUnderChosenHighHalves) {
  for (std::uint32_t high :
       {0x0000u, 0x0001u, 0x3f80u, 0x7f7fu, 0x7f80u, 0x8000u, 0xbf80u, 0xff7fu, 0xffffu}) {
    for (std::uint32_t low = 0; low < 0x10000u; ++low) expect_invertible(high << 16 | low);
  }
}

TEST(SplitMaster, GivesBackRandomMasters) {
  PhiloxStream random(51, 0);
  for (int i = 0; i < 200000; ++i) expect_invertible(random.next_u32());
}

TEST(SplitMaster, RoundsToTheNearestWeight) {
  PhiloxStream random(52, 0);
  for (int i = 0; i < 10000; ++i) {
    const auto master = static_cast<float>(random.next_normal());
    const float weight = to_float(weight_to_bfloat16(master));
    EXPECT_LE(std::abs(weight - master), std::abs(master) * 0x1p-8f);
  }
}

}  // namespace
}  // namespace strata
