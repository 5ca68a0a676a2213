#include "strata/train/run_steps.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(RunSteps, AreAShareOfAllBelowOneRoundedUp) {
  EXPECT_EQ(num_steps(0.1, 95), 10);
  EXPECT_EQ(num_steps(0.5, 100), 50);
  EXPECT_EQ(num_steps(0.001, 3), 1);
  EXPECT_EQ(num_steps(0, 100), 0);
  EXPECT_EQ(num_steps(1, 100), 1);
  EXPECT_EQ(num_steps(500, 100), 500);
}

TEST(RunSteps, EndAnEpochWhereAWholeNumberOfPassesIsReached) {
  EXPECT_FALSE(ends_epoch(0, 0.5));
  EXPECT_TRUE(ends_epoch(0.5, 1));
  EXPECT_FALSE(ends_epoch(1, 1.5));
  EXPECT_TRUE(ends_epoch(1.9, 2.3));
  double thirds = 0;
  for (int i = 0; i < 3; ++i) thirds += 1.0 / 3;
  EXPECT_TRUE(ends_epoch(2.0 / 3, thirds));
}

TEST(RunSteps, TakeAFloorAsARateOfThePeak) {
  RunConfig config;
  config.lr_scheduler_type = ScheduleKind::cosine_with_min_lr;
  config.learning_rate = 2e-5;
  config.lr_min = 5e-6;
  config.warmup_steps = 0.05;
  const LearningRateSchedule rates = learning_rates(config, 100);
  EXPECT_EQ(rates.warmup_steps, 5);
  EXPECT_DOUBLE_EQ(rates.rate(5), 2e-5);
  EXPECT_DOUBLE_EQ(rates.rate(100), 5e-6);
}

TEST(RunSteps, TakeAsManyCyclesAsTransformersDoesByDefault) {
  RunConfig config;
  config.lr_scheduler_type = ScheduleKind::cosine;
  EXPECT_EQ(learning_rates(config, 10).num_cycles, 0.5);
  config.lr_scheduler_type = ScheduleKind::cosine_with_restarts;
  EXPECT_EQ(learning_rates(config, 10).num_cycles, 1);
  config.lr_num_cycles = 4;
  EXPECT_EQ(learning_rates(config, 10).num_cycles, 4);
}

TEST(RunSteps, PassTheArgumentsOfASchedule) {
  RunConfig config;
  config.lr_scheduler_type = ScheduleKind::polynomial;
  config.learning_rate = 1e-4;
  config.lr_power = 2;
  config.lr_end = 1e-5;
  EXPECT_DOUBLE_EQ(learning_rates(config, 10).rate(5), 9e-5 / 4 + 1e-5);
  config.lr_scheduler_type = ScheduleKind::inverse_sqrt;
  config.lr_timescale = 3;
  EXPECT_DOUBLE_EQ(learning_rates(config, 10).rate(9), 1e-4 / 2);
}

}  // namespace
}  // namespace strata
