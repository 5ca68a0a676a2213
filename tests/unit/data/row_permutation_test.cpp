#include "src/data/row_permutation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace strata {
namespace {

std::vector<std::uint64_t> order_of(const RowPermutation& permutation, std::uint64_t size,
                                    std::uint64_t epoch) {
  std::vector<std::uint64_t> order(size);
  for (std::uint64_t i = 0; i < size; ++i) order[i] = permutation.at(epoch, i);
  return order;
}

void expect_bijection(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch) {
  auto order = order_of(RowPermutation(size, seed), size, epoch);
  std::sort(order.begin(), order.end());
  std::vector<std::uint64_t> all(size);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_TRUE(order == all) << "size " << size << " seed " << seed << " epoch " << epoch;
}

TEST(RowPermutation, IsABijectionForEverySmallSize) {
  for (std::uint64_t size = 1; size <= 300; ++size) expect_bijection(size, 42, size % 5);
}

TEST(RowPermutation, IsABijectionAroundPowersAndSquares) {
  for (std::uint64_t size : {1023, 1024, 1025, 4095, 4096, 4097, 9999, 10000, 10001, 65537}) {
    expect_bijection(size, 7, 0);
    expect_bijection(size, 1ull << 40, 1ull << 33);
  }
}

TEST(RowPermutation, DiffersBetweenEpochsAndSeeds) {
  const RowPermutation permutation(1000, 42), other(1000, 43);
  const auto first = order_of(permutation, 1000, 0);
  EXPECT_NE(first, order_of(permutation, 1000, 1));
  EXPECT_NE(first, order_of(permutation, 1000, std::uint64_t{1} << 32));
  EXPECT_NE(first, order_of(other, 1000, 0));
  EXPECT_EQ(first, order_of(permutation, 1000, 0));
}

TEST(RowPermutation, LeavesFewRowsInPlaceAndFewNeighboursTogether) {
  const auto order = order_of(RowPermutation(10'000, 42), 10'000, 3);
  int fixed = 0, neighbours = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    fixed += order[i] == i;
    neighbours += order[i + 1] == order[i] + 1;
  }
  // Each is near 1 for a random order; these bounds hold with probability above 1 - 1e-9.
  EXPECT_LT(fixed, 15);
  EXPECT_LT(neighbours, 15);
}

// Chi-squared over (position, row) in 16 x 16 cells, summed over epochs.
TEST(RowPermutation, SendsEveryPartOfTheRowsEverywhere) {
  constexpr std::uint64_t size = 4000, cells = 16, epochs = 20;
  const RowPermutation permutation(size, 9);
  std::vector<double> count(cells * cells);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint64_t i = 0; i < size; ++i) {
      count[i * cells / size * cells + permutation.at(epoch, i) * cells / size] += 1;
    }
  }
  const double expected = static_cast<double>(size * epochs) / (cells * cells);
  double chi_squared = 0;
  for (double c : count) chi_squared += (c - expected) * (c - expected) / expected;
  // 225 degrees of freedom: mean 225, deviation 21.
  EXPECT_LT(chi_squared, 225 + 6 * 21.0);
  EXPECT_GT(chi_squared, 225 - 6 * 21.0);
}

TEST(RowPermutation, ReachesSizesFarBeyondMemory) {
  constexpr std::uint64_t size = 1'000'000'000'000'007;
  const RowPermutation permutation(size, 42);
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_LT(permutation.at(5, size - 1 - i), size);
}

}  // namespace
}  // namespace strata
