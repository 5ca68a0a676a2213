// What one rank alone learns, all ranks heed in the same step: a stop, a gradient that is not
// finite.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sim/rank_training.hpp"
#include "sim/session_state.hpp"
#include "strata/core/error.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

using testing::all_state_bytes;
using testing::difference;
using testing::of_ranks;
using testing::Outcome;
using testing::place_ranks_randomly;
using testing::RankFacts;
using testing::RankSetup;
using testing::RanksOptions;
using testing::RanksOutcome;
using testing::rounds;
using testing::tiny_config;
using testing::tiny_files;
using testing::train_on_ranks;

// A rate that does not depend on when training is to end.
RunConfig constant_rate_config(int world) {
  RunConfig config = of_ranks(tiny_config(tiny_files(100)), world, 3);
  config.lr_scheduler_type = ScheduleKind::constant;
  config.evaluate = false;
  config.max_steps = 12;
  return config;
}

// Asks rank `asked` to stop while it is in a step.
class StopInStep {
 public:
  StopInStep(int asked, int step) : asked_(asked), step_(step) {}
  RanksOptions options() {
    RanksOptions options;
    options.change = [this](RankSetup& setup) {
      if (setup.rank != asked_) return;
      setup.stop = &stop_;
      setup.executor.before_op = [this](const Op& op) {
        if (op.kind == OpKind::norm && ++norms_ == step_) stop_ = true;
      };
    };
    return options;
  }

 private:
  const int asked_, step_;
  std::atomic<int> norms_ = 0;
  std::atomic<bool> stop_ = false;
};

TEST(Ranks, StopAfterTheSameStepWhenOneIsAskedTo) {
  for (const int world : {2, 3})
    for (int asked = 0; asked < rounds(world, world - 1); ++asked) {
      RunConfig config = constant_rate_config(world);
      StopInStep stop(asked, 4);
      const RanksOutcome stopped = train_on_ranks(config, stop.options());
      for (const RankFacts& rank : stopped.ranks) {
        EXPECT_TRUE(rank.training.stopped);
        EXPECT_EQ(rank.training.steps, 4) << "asked in its fourth, before its result was known";
      }
      config.max_steps = 4;
      EXPECT_EQ(difference(train_on_ranks(config).outcome, stopped.outcome), "");
    }
}

TEST(Ranks, StopBeforeTheFirstStepWhenOneIsAskedToAtOnce) {
  static const std::atomic<bool> stop = true;
  RunConfig config = constant_rate_config(3);
  config.evaluate = true;
  RanksOptions options;
  options.change = [](RankSetup& setup) {
    if (setup.rank == 2) setup.stop = &stop;
  };
  const RanksOutcome stopped = train_on_ranks(config, options);
  for (const RankFacts& rank : stopped.ranks) {
    EXPECT_TRUE(rank.training.stopped);
    EXPECT_EQ(rank.training.steps, 0);
  }
  EXPECT_TRUE(stopped.outcome.held_out.empty()) << "the evaluation was given up by all";
}

TEST(Ranks, ThatAllTrainToTheEndWereNotStopped) {
  static const std::atomic<bool> no_stop = false;
  RanksOptions options;
  options.change = [](RankSetup& setup) { setup.stop = &no_stop; };
  for (const RankFacts& rank : train_on_ranks(constant_rate_config(2), options).ranks) {
    EXPECT_FALSE(rank.training.stopped);
    EXPECT_EQ(rank.training.steps, 12);
  }
}

// --- A document that has no finite embedding, in the rows of one rank.

class RanksWithANonFiniteGradient : public ::testing::TestWithParam<int> {
 protected:
  static int stage() { return GetParam(); }

  // One epoch: the document comes once, to one rank.
  static RunConfig config(NonFinitePolicy policy) {
    static const testing::TrainingFiles files = testing::poisoned_files(31);
    RunConfig config = of_ranks(tiny_config(files), 2, stage());
    config.layout = RowLayout::separate;
    config.cutoff_len = 64;
    config.lr_scheduler_type = ScheduleKind::constant;
    config.non_finite = policy;
    config.gradient_accumulation_steps = 2;
    config.max_steps = 8;
    config.evaluate = false;
    place_ranks_randomly(config, static_cast<std::uint64_t>(20 + stage()));
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(InStage, RanksWithANonFiniteGradient, ::testing::Range(rounds(0, 2), 4),
                         [](const auto& stage) { return std::to_string(stage.param); });

TEST_P(RanksWithANonFiniteGradient, AllSkipTheSameStep) {
  const RanksOutcome skipping = train_on_ranks(config(NonFinitePolicy::skip_step));
  for (const RankFacts& rank : skipping.ranks) {
    EXPECT_EQ(rank.training.steps, 8);
    EXPECT_EQ(rank.training.skipped_steps, 1);
    EXPECT_TRUE(rank.training.failure.empty());
  }
  RunConfig plain = config(NonFinitePolicy::skip_step);
  plain.zero_stage = 0;
  plain.offload = tiny_config({}).offload;
  EXPECT_EQ(train_on_ranks(plain).outcome.weights, skipping.outcome.weights);
  const Outcome& outcome = skipping.outcome;
  EXPECT_EQ(std::ranges::count_if(outcome.norms, [](double n) { return !std::isfinite(n); }), 1);
}

TEST_P(RanksWithANonFiniteGradient, AllStopAtTheSameStepWithNothingOfItApplied) {
  const RanksOutcome stopping = train_on_ranks(config(NonFinitePolicy::stop));
  const std::int64_t steps = stopping.ranks.front().training.steps;
  ASSERT_LE(steps, 8);
  for (const RankFacts& rank : stopping.ranks) {
    EXPECT_EQ(rank.training.steps, steps);
    EXPECT_FALSE(rank.training.stopped);
    EXPECT_NE(rank.training.failure.find("step " + std::to_string(steps)), std::string::npos);
    EXPECT_NE(rank.training.failure.find("not finite"), std::string::npos);
  }
  if (steps == 1) return;
  RunConfig before = config(NonFinitePolicy::stop);
  before.max_steps = steps - 1;
  EXPECT_EQ(train_on_ranks(before).outcome.weights, stopping.outcome.weights);
}

// Tiles are updated before the norm is known: nothing can be skipped, so all end.
TEST_P(RanksWithANonFiniteGradient, EndTheRunWhenUpdatesRunDuringBackward) {
  RunConfig during = config(NonFinitePolicy::stop);
  during.max_grad_norm = 0;
  during.offload.update_order = "during_backward";
  try {
    train_on_ranks(during);
    FAIL() << "went on";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("rank ")) << text;
    EXPECT_NE(text.find(": step "), std::string::npos) << text;
    EXPECT_NE(text.find("not finite"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace strata
