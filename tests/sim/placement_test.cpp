// Where a thing lives never changes a bit: a real model trained under many placements, slot counts,
// executors, engines and numbers of threads.

#include <gtest/gtest.h>

#include <map>

#include "sim/placement_checks.hpp"
#include "sim/tiny_training.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::difference;
using testing::Outcome;
using testing::PlacementChecks;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train;

enum class Precision : std::uint8_t { bf16, fp32 };

class Placement : public ::testing::TestWithParam<Precision> {
 protected:
  static RunConfig config() {
    RunConfig config = tiny_config(tiny_files());
    config.bf16 = GetParam() == Precision::bf16;
    config.max_steps = rounds(20, 8);
    return config;
  }
  // All in host memory, one op after the other.
  static const Outcome& plain() {
    static std::map<Precision, Outcome> known;
    if (!known.contains(GetParam())) known[GetParam()] = train(config(), {ExecutionMode::serial});
    return known[GetParam()];
  }
  static PlacementChecks checks() { return {config(), plain()}; }
};

INSTANTIATE_TEST_SUITE_P(Precisions, Placement, ::testing::Values(Precision::bf16, Precision::fp32),
                         [](const auto& chosen) {
                           return chosen.param == Precision::bf16 ? "Bf16" : "Fp32";
                         });

TEST_P(Placement, TrainsAtAll) {
  ASSERT_EQ(plain().losses.size(), static_cast<std::size_t>(config().max_steps));
  ASSERT_GE(plain().held_out.size(), 3u);
  EXPECT_LT(plain().held_out.back(), plain().held_out.front() - 0.1);
  for (const double norm : plain().norms)
    EXPECT_GT(norm, config().max_grad_norm) << "clipping is at work";
}

TEST_P(Placement, NeverChangesABitOnThreads) { checks().on_threads(0, rounds(24, 6)); }

TEST_P(Placement, NeverChangesABitInAnyLegalOrder) { checks().in_legal_orders(100, rounds(20, 3)); }

TEST_P(Placement, NeverChangesABitWithEachNumberOfThreads) {
  for (const int threads : {2, 5}) {
    RunConfig placed = config();
    placed.compute_threads = threads;
    checks().expect_plain_bits(placed, {}, std::to_string(threads) + " compute threads");
    placed.compute_threads = 1;
    placed.update_threads = threads;
    checks().expect_plain_bits(placed, {}, std::to_string(threads) + " update threads");
  }
}

TEST_P(Placement, NeverChangesABitWithEverythingInOneTier) {
  for (const TierFractions tier : {TierFractions{1, 0, 0}, TierFractions{0, 0, 1}}) {
    RunConfig placed = checks().all_in(tier);
    for (const char* engine : {"auto", "threads"}) {
      placed.offload.io_engine = engine;
      checks().expect_plain_bits(placed, {}, engine);
      if (tier.nvme == 0) break;
    }
  }
}

TEST_P(Placement, NeverChangesABitWhetherLayersAreKeptOrComputedAgain) { checks().layers_kept(); }

TEST_P(Placement, NeverChangesABitWhetherUpdatesRunDuringOrAfterBackward) {
  checks().updates_during_backward(200, rounds(6, 2));
}

TEST(Outcome, SeesADifferenceWhenThereIsOne) {
  RunConfig config = tiny_config(tiny_files());
  config.max_steps = 4;
  const Outcome one = train(config);
  config.learning_rate *= 1.0001;
  EXPECT_EQ(difference(one, train(config)), " losses norms held-out losses weights");
}

}  // namespace
}  // namespace strata
