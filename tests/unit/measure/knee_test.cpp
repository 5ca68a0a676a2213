#include "src/measure/knee.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "strata/core/philox.hpp"

namespace strata {
namespace {

using Curve = std::vector<double>;

Curve operator+(Curve left, const Curve& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}
Curve level(double rate, std::size_t intervals) { return Curve(intervals, rate); }

Curve with_noise(Curve curve, double part, std::uint64_t seed) {
  PhiloxStream random(seed, 0);
  for (double& rate : curve) rate *= 1 + part * (2 * random.next_uniform() - 1);
  return curve;
}

TEST(Knee, IsTheFirstIntervalOfTheLowerLevel) {
  EXPECT_EQ(find_knee(level(7e9, 20) + level(2e9, 40)), 20u);
  EXPECT_EQ(find_knee(level(7e9, 3) + level(2e9, 3)), 3u);
  EXPECT_EQ(find_knee(level(7e9, 100) + level(5.5e9, 10)), 100u);
}

TEST(Knee, IsNotThereWithoutAFallBelowFourFifths) {
  EXPECT_FALSE(find_knee(level(7e9, 60)));
  EXPECT_FALSE(find_knee(level(7e9, 30) + level(5.7e9, 30)));
  EXPECT_FALSE(find_knee(level(2e9, 30) + level(7e9, 30)));
}

TEST(Knee, NeedsSomethingOnBothSides) {
  EXPECT_FALSE(find_knee({}));
  EXPECT_FALSE(find_knee(level(7e9, 1)));
  EXPECT_FALSE(find_knee(level(7e9, 2) + level(1e9, 2)));
}

TEST(Knee, IsNoShortDip) {
  EXPECT_FALSE(find_knee(level(7e9, 20) + level(1e9, 2) + level(7e9, 20)));
  EXPECT_FALSE(
      find_knee(level(7e9, 20) + level(0, 1) + level(7e9, 5) + level(0, 2) + level(7e9, 20)));
}

TEST(Knee, IsNoLongDipFromWhichTheDriveRecovers) {
  EXPECT_FALSE(find_knee(level(7e9, 20) + level(2e9, 12) + level(7e9, 30)));
  EXPECT_FALSE(find_knee(level(7e9, 10) + level(3e9, 10) + level(7e9, 9)));
}

TEST(Knee, IsFoundAmongDipsAndBursts) {
  Curve curve = level(7e9, 40) + level(2e9, 60);
  curve[10] = curve[25] = 0;
  curve[60] = curve[80] = 7e9;
  EXPECT_EQ(find_knee(curve), 40u);
}

TEST(Knee, OfSeveralFallsIsTheFirst) {
  EXPECT_EQ(find_knee(level(7e9, 20) + level(4e9, 20) + level(1e9, 20)), 20u);
  EXPECT_EQ(find_knee(level(7e9, 10) + level(5e9, 10) + level(1e9, 100)), 10u);
}

TEST(Knee, IsFoundInNoiseWithinAnIntervalOrTwo) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto knee = find_knee(with_noise(level(7e9, 40) + level(3e9, 50), 0.2, seed));
    ASSERT_TRUE(knee) << seed;
    EXPECT_NEAR(static_cast<double>(*knee), 40, 2) << seed;
  }
}

TEST(Knee, IsNotFoundInNoiseAlone) {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    EXPECT_FALSE(find_knee(with_noise(level(5e9, 90), 0.3, seed))) << seed;
}

}  // namespace
}  // namespace strata
