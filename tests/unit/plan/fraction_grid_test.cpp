#include "strata/plan/fraction_grid.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "strata/core/philox.hpp"

namespace strata {
namespace {

TEST(FractionGrid, HoldsWholeTenThousandthsThatSumToOne) {
  PhiloxStream random(1, 5);
  const auto drawn = [&] { return static_cast<double>(random.next_below(1'000'000)) / 1e6; };
  for (int i = 0; i < 10'000; ++i) {
    const double device = drawn();
    const double nvme = (1 - device) * drawn();
    const TierFractions f = on_grid(TierFractions{device, 1 - device - nvme, nvme});
    EXPECT_NEAR(f.device + f.host + f.nvme, 1, 1e-15);
    for (const double fraction : {f.device, f.host, f.nvme}) {
      EXPECT_EQ(fraction, std::round(fraction * 1e4) / 1e4);
      EXPECT_FALSE(std::signbit(fraction));
    }
  }
}

TEST(FractionGrid, IsNotLeftByMovesAndKeepsNoDust) {
  TierFractions f{0, 1, 0};
  for (int i = 0; i < 3; ++i) move_fraction(f, Tier::host, Tier::device, 1.0 / 3);
  EXPECT_EQ(f.device, 1);
  EXPECT_EQ(f.host, 0);
  EXPECT_FALSE(std::signbit(f.host));
  EXPECT_EQ(move_fraction(f, Tier::host, Tier::nvme, 0.5), 0);
  EXPECT_EQ(move_fraction(f, Tier::device, Tier::nvme, 0.02632), 0.0263);
  EXPECT_EQ(f.device, 0.9737);
  EXPECT_EQ(f.nvme, 0.0263);
}

}  // namespace
}  // namespace strata
