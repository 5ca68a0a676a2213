#include "src/telemetry/link_rate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "strata/core/philox.hpp"

namespace strata {
namespace {

constexpr std::int64_t s = 1'000'000'000;

double integral(const std::vector<LinkRate::Point>& points) {
  double sum = 0;
  for (std::size_t i = 1; i < points.size(); ++i)
    sum += 1e-9 * static_cast<double>(points[i].at_ns - points[i - 1].at_ns) *
           points[i - 1].bytes_per_s;
  return sum;
}

double rate_at(const std::vector<LinkRate::Point>& points, std::int64_t ns) {
  double rate = 0;
  for (const LinkRate::Point& point : points)
    if (point.at_ns <= ns) rate = point.bytes_per_s;
  return rate;
}

double peak(const std::vector<LinkRate::Point>& points) {
  return std::ranges::max_element(points, {}, &LinkRate::Point::bytes_per_s)->bytes_per_s;
}

TEST(LinkRate, IsTheAverageOfATransferByItself) {
  LinkRate rate;
  EXPECT_TRUE(rate.points().empty());
  rate.add(1 * s, 3 * s, 20);
  rate.add(3 * s, 4 * s, 30);
  rate.add(6 * s, 10 * s, 4);
  const auto points = rate.points();
  EXPECT_DOUBLE_EQ(rate_at(points, 2 * s), 10);
  EXPECT_DOUBLE_EQ(rate_at(points, 3 * s), 30);
  EXPECT_DOUBLE_EQ(rate_at(points, 5 * s), 0);
  EXPECT_DOUBLE_EQ(rate_at(points, 7 * s), 1);
  EXPECT_EQ(points.back().at_ns, 10 * s);
  EXPECT_EQ(points.back().bytes_per_s, 0);
}

TEST(LinkRate, LeavesOutATransferWithoutALength) {
  LinkRate rate;
  rate.add(5, 5, 100);
  EXPECT_TRUE(rate.points().empty());
}

// The first is under way for 4 s and moves in the two in which the second has ended: their averages
// would sum to 30 bytes per second.
TEST(LinkRate, DoesNotSumTheAveragesOfTransfersThatTookTurns) {
  LinkRate rate;
  rate.add(0, 4 * s, 40);
  rate.add(0, 2 * s, 40);
  EXPECT_DOUBLE_EQ(peak(rate.points()), 20);
  EXPECT_DOUBLE_EQ(integral(rate.points()), 80);
}

// Two lanes hand transfers to one link that serves them one at a time, in any order, at one rate.
TEST(LinkRate, IsNeverMoreThanTheLinksAndIntegratesToAllBytes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    PhiloxStream random(seed, 1);
    LinkRate rate;
    constexpr double link_rate = 1e9;  // a byte each nanosecond
    std::int64_t link = 0;
    std::array<std::int64_t, 2> lanes{};
    double bytes = 0;
    for (int i = 0; i < 400; ++i) {
      std::int64_t& lane = lanes[random.next_below(2)];
      const auto size = static_cast<std::int64_t>(1 + random.next_below(1000));
      const std::int64_t handed =
          lane +
          (random.next_below(4) == 0 ? static_cast<std::int64_t>(random.next_below(900)) : 0);
      lane = link = std::max(handed, link) + size;
      rate.add(handed, lane, static_cast<std::uint64_t>(size));
      bytes += static_cast<double>(size);
    }
    const auto points = rate.points();
    EXPECT_NEAR(integral(points) / bytes, 1, 1e-12) << seed;
    EXPECT_LE(peak(points), link_rate * (1 + 1e-9)) << seed;
    for (std::size_t i = 1; i < points.size(); ++i) EXPECT_LT(points[i - 1].at_ns, points[i].at_ns);
    for (const LinkRate::Point& point : points) EXPECT_GE(point.bytes_per_s, 0) << seed;
  }
}

}  // namespace
}  // namespace strata
