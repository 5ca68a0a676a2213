#include <gtest/gtest.h>

#include <vector>

#include "src/measure/block_sweep.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

NvmeResult point(NvmePattern pattern, std::uint64_t block, int depth, std::vector<double> rates) {
  NvmeResult result;
  result.pattern = pattern;
  result.block_bytes = block;
  result.depth = depth;
  result.bytes_per_s = {std::move(rates)};
  return result;
}
NvmeResult mixed(std::uint64_t block, int depth, double rate) {
  return point(NvmePattern::mixed, block, depth, {rate});
}

void expect_choice(const std::vector<NvmeResult>& sweep, std::uint64_t block, int depth) {
  const BlockChoice choice = choose_block(sweep);
  EXPECT_EQ(choice.block_bytes, block);
  EXPECT_EQ(choice.depth, depth);
}

TEST(BlockChoice, IsTheFewestBytesInFlightWithinTwoPercentOfTheBest) {
  expect_choice({mixed(1 * MiB, 8, 4.0e9), mixed(4 * MiB, 8, 4.95e9), mixed(4 * MiB, 32, 5.0e9)},
                4 * MiB, 8);
  expect_choice({mixed(1 * MiB, 8, 4.0e9), mixed(4 * MiB, 8, 4.85e9), mixed(4 * MiB, 32, 5.0e9)},
                4 * MiB, 32);
}

TEST(BlockChoice, OfAsManyBytesInFlightTakesTheSmallerBlock) {
  expect_choice({mixed(4 * MiB, 8, 5e9), mixed(1 * MiB, 32, 5e9)}, 1 * MiB, 32);
}

TEST(BlockChoice, LooksAtMedians) {
  expect_choice({point(NvmePattern::mixed, 1 * MiB, 1, {9e9, 1e9, 1e9}),
                 point(NvmePattern::mixed, 4 * MiB, 1, {5e9, 5e9, 5e9})},
                4 * MiB, 1);
}

TEST(BlockChoice, LooksAtMixedAloneWhereItWasMeasured) {
  expect_choice({mixed(1 * MiB, 1, 5e9), point(NvmePattern::read, 1 * MiB, 1, {1e9}),
                 mixed(4 * MiB, 1, 4e9), point(NvmePattern::read, 4 * MiB, 1, {9e9})},
                1 * MiB, 1);
}

// 4 and 4 take 0.50 s per GB of each, 2 and 9 take 0.61 s.
TEST(BlockChoice, WithoutMixedIsOfReadingAndWritingOneAfterTheOther) {
  expect_choice(
      {point(NvmePattern::read, 1 * MiB, 1, {2e9}), point(NvmePattern::write, 1 * MiB, 1, {9e9}),
       point(NvmePattern::read, 4 * MiB, 1, {4e9}), point(NvmePattern::write, 4 * MiB, 1, {4e9})},
      4 * MiB, 1);
}

TEST(BenchTargets, AreEachPathAndThenAllOfSeveral) {
  const std::vector<std::string> one = {"/a"}, two = {"/a", "/b"};
  ASSERT_EQ(bench_targets(one).size(), 1u);
  const auto targets = bench_targets(two);
  ASSERT_EQ(targets.size(), 3u);
  EXPECT_EQ(targets[1].name, "/b");
  EXPECT_EQ(targets[1].sites, std::vector<std::size_t>{1});
  EXPECT_EQ(targets[2].name, "all");
  EXPECT_EQ(targets[2].sites, (std::vector<std::size_t>{0, 1}));
}

TEST(LatencyPercentiles, AreOfTheNearestRank) {
  std::vector<double> values;
  for (int value = 200; value > 0; --value) values.push_back(value);
  const Latency latency = latency_of(values);
  EXPECT_EQ(latency.p50_us, 100);
  EXPECT_EQ(latency.p99_us, 198);
  EXPECT_EQ(latency.max_us, 200);
  EXPECT_EQ(latency_of({7}).p50_us, 7);
  EXPECT_EQ(latency_of({}).max_us, 0);
}

}  // namespace
}  // namespace strata
