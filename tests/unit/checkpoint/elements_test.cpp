#include "src/checkpoint/elements.hpp"

#include <cmath>
#include <limits>

#include "checkpoint_testing.hpp"

namespace strata {
namespace {

TEST(Elements, EveryF16ValueSurvivesTheWayThroughFp32) {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const float value = f16_to_float(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(value))));
    } else {
      ASSERT_EQ(float_to_f16(value), bits);
    }
  }
}

TEST(Elements, RoundsToTheNearestF16WithTiesToEven) {
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-11f), 0x3c00u);             // tie, to even below
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-10f + 0x1p-11f), 0x3c02u);  // tie, to even above
  EXPECT_EQ(float_to_f16(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01u);
  EXPECT_EQ(float_to_f16(0x1p-25f), 0u);  // tie between 0 and the smallest
  EXPECT_EQ(float_to_f16(0x1.8p-24f), 2u);
  EXPECT_EQ(float_to_f16(0x1.ffcp-15f), 0x0400u);  // rounds up to the smallest normal
  EXPECT_EQ(float_to_f16(65519.0f), 0x7bffu);
  EXPECT_EQ(float_to_f16(-65520.0f), 0xfc00u);
  EXPECT_EQ(float_to_f16(std::numeric_limits<float>::infinity()), 0x7c00u);
}

TEST(Elements, ConvertUnalignedBytes) {
  const std::vector<float> values{1.5f, -0.25f, 3.0f};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const auto bytes = values.size() * static_cast<std::size_t>(dtype_bytes(dtype));
    std::vector<std::byte> stored(bytes + 1);
    std::vector<float> back(values.size());
    from_f32(values, dtype, std::span(stored).subspan(1));
    to_f32(std::span(stored).subspan(1), dtype, back);
    EXPECT_EQ(back, values);
  }
}

}  // namespace
}  // namespace strata
