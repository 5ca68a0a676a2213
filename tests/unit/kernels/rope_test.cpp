#include "kernels/cpu/rope.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "contract/kernels/kernels_harness.hpp"
#include "kernels/cpu/parallel.hpp"

namespace strata::testing {
namespace {

std::vector<float> frequencies(std::int64_t head_dim, double base = 10000) {
  std::vector<float> result;
  for (std::int64_t j = 0; j < head_dim / 2; ++j) {
    result.push_back(static_cast<float>(
        std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim))));
  }
  return result;
}

// Two documents; the second begins at `second`.
Tensor document_starts(std::int64_t tokens, std::int64_t second) {
  std::vector<std::int32_t> starts;
  for (std::int64_t t = 0; t < tokens; ++t)
    starts.push_back(static_cast<std::int32_t>(t < second ? 0 : second));
  return integers(starts);
}

Tensor rotated(const Tensor& x, const Tensor& starts, const std::vector<float>& inverse_frequencies,
               double direction) {
  Tensor result(DType::f64, x.view().shape);
  const std::int64_t heads = x.view().dim(1), d = x.view().dim(2);
  for (std::int64_t row = 0; row < x.view().dim(0) * heads; ++row) {
    const auto position =
        static_cast<float>(static_cast<double>(row / heads) - starts.at(row / heads));
    for (std::int64_t j = 0; j < d / 2; ++j) {
      const double angle =
          direction *
          static_cast<double>(position * inverse_frequencies[static_cast<std::size_t>(j)]);
      const double first = x.at(row * d + j), second = x.at(row * d + j + d / 2);
      result.set(row * d + j, first * std::cos(angle) - second * std::sin(angle));
      result.set(row * d + j + d / 2, second * std::cos(angle) + first * std::sin(angle));
    }
  }
  return result;
}

TEST(Rope, TurnsPairsByThePositionInTheDocument) {
  PhiloxStream random(3, 0);
  cpu::Parallel parallel(2);
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (std::int64_t d : {2, 6, 8, 64, 96, 160}) {
      const Tensor x = random_normal(random, dtype, {70, 3, d});
      const Tensor starts = document_starts(70, 41);
      const Tensor expected = rotated(x, starts, frequencies(d), 1);
      cpu::rope(parallel, x, starts, frequencies(d), Rotation::forward);
      expect_close(x, expected, "head_dim " + std::to_string(d));
    }
  }
}

TEST(Rope, InverseTurnsTheOtherWay) {
  PhiloxStream random(3, 1);
  cpu::Parallel parallel(2);
  const Tensor x = random_normal(random, DType::f32, {9, 2, 10});
  const Tensor starts = document_starts(9, 5);
  const Tensor expected = rotated(x, starts, frequencies(10), -1);
  cpu::rope(parallel, x, starts, frequencies(10), Rotation::inverse);
  expect_close(x, expected, "inverse");
}

TEST(Rope, IsRightFarFromTheDocumentsStart) {
  PhiloxStream random(3, 2);
  cpu::Parallel parallel(2);
  const std::int64_t tokens = 50000;
  const Tensor x = random_normal(random, DType::f32, {tokens, 1, 2});
  const Tensor starts = document_starts(tokens, tokens);
  const Tensor expected = rotated(x, starts, {1.0f}, 1);
  cpu::rope(parallel, x, starts, std::vector<float>{1.0f}, Rotation::forward);
  expect_close(x, expected, "far");
}

TEST(Rope, GivesTheSameBitsForAnyNumberOfThreads) {
  PhiloxStream random(3, 3);
  const Tensor x = random_normal(random, DType::bf16, {200, 2, 16});
  const Tensor starts = document_starts(200, 60);
  std::vector<std::string> bits;
  for (int threads : {1, 2, 5}) {
    cpu::Parallel parallel(threads);
    const Tensor y = copy_of(x);
    cpu::rope(parallel, y, starts, frequencies(16), Rotation::forward);
    bits.push_back(y.bits());
  }
  EXPECT_EQ(bits[0], bits[1]);
  EXPECT_EQ(bits[0], bits[2]);
}

}  // namespace
}  // namespace strata::testing
