#include "strata/optim/schedule.hpp"

#include <gtest/gtest.h>

#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr ScheduleKind kinds[] = {ScheduleKind::linear,
                                  ScheduleKind::cosine,
                                  ScheduleKind::constant,
                                  ScheduleKind::constant_with_warmup,
                                  ScheduleKind::warmup_stable_decay,
                                  ScheduleKind::cosine_with_min_lr,
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

TEST(LearningRateSchedule, OfOneStepDividesByNothing) {
  for (const ScheduleKind kind : kinds) {
    const LearningRateSchedule schedule{kind, 1, 0, 1, 0, 0, 0.5, 1, 1e-7, 0};
    EXPECT_EQ(schedule.rate(0), 1) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace strata
