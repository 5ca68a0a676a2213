// Ranks and accumulation trade places: the same data trained by more ranks, or by more
// micro-batches, gives the same model. Gradients are summed in another order, so within a
// tolerance, which is stated here.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/rank_training.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::exported_f32;
using testing::of_ranks;
using testing::Outcome;
using testing::place_ranks_randomly;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train_on_ranks;

// Relative to the run of one rank.
struct Tolerance {
  double loss, norm, weights;
};
// Several tens of what is seen: 4e-9, 4e-8, 2e-8.
constexpr Tolerance in_fp32{1e-7, 1e-6, 1e-6};
// Contributions are bf16. One rank adds its micro-batches' in fp32; ranks sum theirs in fp32 but
// carry the sum, like the contributions, in bf16: one more rounding, by 2^-9 of an element. Seen:
// 5e-5, 5e-4, 3e-4.
constexpr Tolerance in_bf16{3e-4, 3e-3, 1e-3};

RunConfig config_of(bool bf16) {
  RunConfig config = tiny_config(tiny_files());
  config.bf16 = bf16;
  config.export_dtype = DType::f32;
  config.max_steps = rounds(8, 3);
  config.eval_steps = 4;
  return config;
}

Outcome train_split(RunConfig config, int world, int accumulation) {
  config.gradient_accumulation_steps = accumulation;
  place_ranks_randomly(config, static_cast<std::uint64_t>(70 + world));
  return train_on_ranks(of_ranks(config, world, 3)).outcome;
}

double worst_error(const std::vector<double>& expected, const std::vector<double>& got) {
  double worst = expected.size() == got.size() && !got.empty() ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
    worst = std::max(worst, std::abs(got[i] - expected[i]) / std::abs(expected[i]));
  return worst;
}

// The 2-norm of the difference, relative to that of the weights.
double weights_error(const Outcome& expected, const Outcome& got) {
  const std::vector<float> one = exported_f32(expected.weights), other = exported_f32(got.weights);
  if (one.size() != other.size()) return HUGE_VAL;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double apart = static_cast<double>(one[i]) - static_cast<double>(other[i]);
    difference += apart * apart;
    size += static_cast<double>(one[i]) * static_cast<double>(one[i]);
  }
  return std::sqrt(difference / size);
}

void expect_within(const Tolerance& tolerance, const Outcome& expected, const Outcome& got,
                   const std::string& what) {
  const double loss = std::max(worst_error(expected.losses, got.losses),
                               worst_error(expected.held_out, got.held_out));
  const double norm = worst_error(expected.norms, got.norms);
  const double weights = weights_error(expected, got);
  std::printf("  %s: losses within %.1e, norms %.1e, weights %.1e\n", what.c_str(), loss, norm,
              weights);
  EXPECT_LE(loss, tolerance.loss) << what;
  EXPECT_LE(norm, tolerance.norm) << what;
  EXPECT_LE(weights, tolerance.weights) << what;
}

// The micro-batches of a step divided among each of these worlds.
void expect_worlds_alike(bool bf16, int micro_batches, std::initializer_list<int> worlds) {
  const RunConfig config = config_of(bf16);
  const Outcome one = train_split(config, 1, micro_batches);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const int world : worlds)
    expect_within(bf16 ? in_bf16 : in_fp32, one, train_split(config, world, micro_batches / world),
                  std::to_string(world) + " ranks, " + std::to_string(micro_batches / world) +
                      " micro-batches each");
}

TEST(WorldSize, TradesPlacesWithAccumulationInFp32) {
  if (testing::sanitized) return expect_worlds_alike(false, 4, {2, 4});
  expect_worlds_alike(false, 8, {2, 4, 8});
}

TEST(WorldSize, TradesPlacesWithAccumulationInBf16) {
  if (testing::sanitized) return expect_worlds_alike(true, 4, {2});
  expect_worlds_alike(true, 8, {2, 4, 8});
}

TEST(WorldSize, TradesPlacesWithAccumulationWhereItDividesNothing) {
  expect_worlds_alike(false, 6, {3});
  expect_worlds_alike(false, 5, {5});
}

// Documents of unequal length, each in a row of its own: the ranks train unequally many tokens.
TEST(WorldSize, DoesNotChangeTheWeightOfATokenWhenRanksHoldUnequallyMany) {
  RunConfig config = config_of(false);
  config.layout = RowLayout::separate;
  config.cutoff_len = 80;
  const Outcome one = train_split(config, 1, 6);
  expect_within(in_fp32, one, train_split(config, 2, 3), "2 ranks");
  expect_within(in_fp32, one, train_split(config, 3, 2), "3 ranks");
}

}  // namespace
}  // namespace strata
