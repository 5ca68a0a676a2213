#include "strata/optim/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr ScheduleKind kinds[] = {ScheduleKind::linear,
                                  ScheduleKind::cosine,
                                  ScheduleKind::constant,
                                  ScheduleKind::constant_with_warmup,
                                  ScheduleKind::warmup_stable_decay,
                                  ScheduleKind::cosine_with_min_lr,
                                  ScheduleKind::cosine_with_restarts,
                                  ScheduleKind::polynomial,
                                  ScheduleKind::inverse_sqrt};

TEST(LearningRateSchedule, IsReadByItsTransformersName) {
  EXPECT_EQ(parse_schedule("linear"), ScheduleKind::linear);
  EXPECT_EQ(parse_schedule("cosine"), ScheduleKind::cosine);
  EXPECT_EQ(parse_schedule("constant"), ScheduleKind::constant);
  EXPECT_EQ(parse_schedule("constant_with_warmup"), ScheduleKind::constant_with_warmup);
  EXPECT_EQ(parse_schedule("warmup_stable_decay"), ScheduleKind::warmup_stable_decay);
}

TEST(LearningRateSchedule, RefusesAnotherNameAndListsTheKnown) {
  try {
    parse_schedule("stairs");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    for (const char* part : {"'stairs'", "linear", "polynomial", "cosine", "constant_with_warmup",
                             "warmup_stable_decay"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(LearningRateSchedule, StaysBetweenZeroAndItsPeak) {
  for (const ScheduleKind kind : kinds)
    for (const std::int64_t warmup : {0, 1, 10, 50}) {
      const LearningRateSchedule schedule{kind, 3e-4, warmup, 50, 20, 0.1, 0.5, 2, 1e-7, 0};
      for (std::int64_t step = 0; step <= 60; ++step) {
        EXPECT_GE(schedule.rate(step), 0);
        EXPECT_LE(schedule.rate(step), 3e-4 * (1 + 1e-12));
      }
    }
}

// transformers' get_cosine_with_hard_restarts_schedule_with_warmup, written out. Both are of
// doubles and take the same few operations: they may part in the last places.
TEST(LearningRateSchedule, RestartsAtThePeakAsTransformersDoes) {
  constexpr double pi = 3.14159265358979323846, tolerance = 1e-15;
  for (const double cycles : {1.0, 3.0, 2.5})
    for (const std::int64_t warmup : {0, 7}) {
      constexpr std::int64_t total = 61;
      const LearningRateSchedule schedule{.kind = ScheduleKind::cosine_with_restarts,
                                          .peak = 1,
                                          .warmup_steps = warmup,
                                          .total_steps = total,
                                          .num_cycles = cycles};
      for (std::int64_t step = 0; step < total + 5; ++step) {
        double expected = 0;
        const double done = static_cast<double>(step - warmup);
        if (step < warmup) {
          expected = static_cast<double>(step) / static_cast<double>(warmup);
        } else if (step < total) {
          const double waves = cycles * (done / static_cast<double>(total - warmup));
          expected = 0.5 * (1 + std::cos(pi * (waves - std::floor(waves))));
        }
        EXPECT_NEAR(schedule.rate(step), expected, tolerance) << cycles << " " << step;
      }
    }
}

TEST(LearningRateSchedule, IsAtItsPeakWhereItRestarts) {
  const LearningRateSchedule schedule{.kind = ScheduleKind::cosine_with_restarts,
                                      .peak = 1,
                                      .warmup_steps = 10,
                                      .total_steps = 110,
                                      .num_cycles = 4};
  for (const std::int64_t step : {10, 35, 60, 85}) EXPECT_EQ(schedule.rate(step), 1) << step;
  EXPECT_LT(schedule.rate(34), 0.01);
  EXPECT_EQ(schedule.rate(110), 0);
}

TEST(LearningRateSchedule, OfOneStepDividesByNothing) {
  for (const ScheduleKind kind : kinds) {
    const LearningRateSchedule schedule{kind, 1, 0, 1, 0, 0, 0.5, 1, 1e-7, 0};
    EXPECT_EQ(schedule.rate(0), 1) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace strata
