// The 8-bit block format: its codes go round, its values stay near, its rounding is exact in the
// mean, and its second moments never vanish.

#include "strata/core/block_q8.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "strata/core/philox.hpp"
#include "strata/core/tensor_view.hpp"

namespace strata {
namespace {

constexpr std::uint32_t half = 1u << 19, last = (1u << 20) - 1;  // of the random numbers

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(BlockQ8, HoldsCodesThenAScalePerBlock) {
  EXPECT_EQ(storage_bytes(DType::q8, 256), 256 + 4);
  EXPECT_EQ(storage_bytes(DType::q8, 4096), 4096 + 16 * 4);
  EXPECT_EQ(storage_bytes(DType::q8, 257), 320 + 2 * 4);
  EXPECT_EQ(storage_bytes(DType::bf16, 257), 514);
  EXPECT_EQ((TensorView{nullptr, DType::q8, {4096}}.bytes()), 4096 + 64);
}

TEST(BlockQ8, GivesEveryCodeBackWhateverTheRandomBits) {
  for (const float scale : {0x1p-126f, 0x1p-60f, 1.0f, 0x1p90f}) {
    const float inverse = q8_inverse_scale(scale);
    for (std::uint32_t random : {0u, half, last}) {
      for (int code = 0; code < 256; ++code) {
        const auto byte = static_cast<std::uint8_t>(code);
        EXPECT_EQ(q8_encode_signed(q8_decode_signed(byte, scale), inverse, random), byte);
        EXPECT_EQ(q8_encode_unsigned(q8_decode_unsigned(byte, scale), inverse, random), byte);
      }
    }
  }
}

TEST(BlockQ8, ChoosesAPowerOfTwoThatReachesTheLargestValue) {
  PhiloxStream random(71, 0);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(1 + random.next_u32() % 0x7f7fffffu);
    const float scale1 = q8_scale(bits_of(value), q8_signed_octaves),
                scale2 = q8_scale(bits_of(value), q8_unsigned_octaves);
    int exponent = 0;
    ASSERT_EQ(std::frexp(scale1, &exponent), 0.5f);
    ASSERT_LT(q8_encode_signed(value, q8_inverse_scale(scale1), last), 128);
    const auto code = q8_encode_unsigned(value, q8_inverse_scale(scale2), 0);
    const float step = 0.25f * scale2, got = q8_decode_unsigned(code, scale2);
    ASSERT_NEAR(got, value, value / 8 + step);
  }
}

TEST(BlockQ8, StaysWithinAStepOfEveryValue) {
  PhiloxStream random(72, 0);
  const float scale = q8_scale(bits_of(1), q8_signed_octaves), inverse = q8_inverse_scale(scale);
  for (int i = 0; i < 100000; ++i) {
    const float value = static_cast<float>(std::exp(-14 * random.next_uniform()));
    const auto code = q8_encode_signed(-value, inverse, random.next_u32() >> 12);
    ASSERT_NEAR(q8_decode_signed(code, scale), -value, value / 8 + 0x1p-18f) << value;
  }
}

TEST(BlockQ8, RoundsExactlyInTheMean) {
  for (const float value : {1.03f, 0.317f, 1e-3f, 2e-6f}) {
    double sum1 = 0, sum2 = 0;
    const float scale1 = q8_scale(bits_of(1), q8_signed_octaves),
                scale2 = q8_scale(bits_of(1), q8_unsigned_octaves);
    constexpr int draws = 4096;  // evenly spaced: the mean has no noise
    for (std::uint32_t i = 0; i < draws; ++i) {
      const std::uint32_t random = i << 8;
      sum1 += static_cast<double>(
          q8_decode_signed(q8_encode_signed(value, q8_inverse_scale(scale1), random), scale1));
      sum2 += static_cast<double>(
          q8_decode_unsigned(q8_encode_unsigned(value, q8_inverse_scale(scale2), random), scale2));
    }
    EXPECT_NEAR(sum1 / draws, static_cast<double>(value), 1e-4 * static_cast<double>(value) + 2e-9);
    EXPECT_NEAR(sum2 / draws, static_cast<double>(value), 1e-4 * static_cast<double>(value) + 2e-9);
  }
}

TEST(BlockQ8, NeverMakesAPositiveSecondMomentZero) {
  for (const float largest : {1e-44f, 1e-30f, 1.0f, 1e30f}) {
    const float scale = q8_scale(bits_of(largest), q8_unsigned_octaves);
    for (float value = largest; value > 0; value /= 16) {
      const auto code = q8_encode_unsigned(value, q8_inverse_scale(scale), 0);
      EXPECT_GT(q8_decode_unsigned(code, scale), 0) << value << " of " << largest;
    }
    EXPECT_EQ(q8_encode_unsigned(0, q8_inverse_scale(scale), last), 0);
  }
}

TEST(BlockQ8, KeepsValuesOnTheirGridWhenTheScaleDoubles) {
  // So that a block's values are not rounded anew, each with a new error, at every change of it.
  for (int code = 110; code < 256; ++code) {
    const float value = q8_decode_unsigned(static_cast<std::uint8_t>(code), 1);
    const float doubled = q8_decode_unsigned(q8_encode_unsigned(value, 0.5f, half), 2);
    EXPECT_NEAR(doubled, value, value * 0x1p-13f);
  }
}

TEST(BlockQ8, MarksABlockThatIsNotFinite) {
  const float scale = q8_scale(0x7f800000u, q8_signed_octaves);
  EXPECT_TRUE(std::isnan(scale));
  EXPECT_EQ(q8_encode_signed(1, q8_inverse_scale(scale), 0), 0);
  EXPECT_TRUE(std::isnan(q8_decode_signed(0, scale)));
}

TEST(Bfloat16, RoundsStochasticallyInProportion) {
  const float value = 1 + 0x1p-7f * 0.25f;  // a quarter of the way to the next bf16
  int up = 0;
  for (std::uint32_t random = 0; random < 0x10000u; ++random)
    up += to_float(to_bfloat16_stochastic(value, random)) > 1;
  EXPECT_EQ(up, 0x4000);
  EXPECT_TRUE(
      std::isnan(to_float(to_bfloat16_stochastic(std::bit_cast<float>(0x7fffffffu), 0xffff))));
  EXPECT_TRUE(std::isinf(to_float(to_bfloat16_stochastic(INFINITY, 0xffff))));
}

}  // namespace
}  // namespace strata
