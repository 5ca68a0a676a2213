#include "io/common/drain_epochs.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(DrainEpochs, PassesAtOnceWhenNothingHasBegun) {
  DrainEpochs epochs;
  EXPECT_TRUE(epochs.passed(epochs.close()));
}

TEST(DrainEpochs, PassesWhenEverythingBegunBeforeHasEndedThoughLaterThingsGoOn) {
  DrainEpochs epochs;
  const auto first = epochs.begin(), second = epochs.begin();
  const auto closed = epochs.close();
  const auto later = epochs.begin();
  epochs.end(second);
  EXPECT_FALSE(epochs.passed(closed));
  epochs.end(first);
  EXPECT_TRUE(epochs.passed(closed));
  const auto closed_later = epochs.close();
  EXPECT_FALSE(epochs.passed(closed_later));
  epochs.end(later);
  EXPECT_TRUE(epochs.passed(closed_later));
}

TEST(DrainEpochs, WaitsForOlderEpochsWhenYoungerOnesEndFirst) {
  DrainEpochs epochs;
  const auto old = epochs.begin();
  const auto closed_old = epochs.close();
  const auto young = epochs.begin();
  const auto closed_young = epochs.close();
  epochs.end(young);
  EXPECT_FALSE(epochs.passed(closed_young));
  epochs.end(old);
  EXPECT_TRUE(epochs.passed(closed_old));
  EXPECT_TRUE(epochs.passed(closed_young));
}

}  // namespace
}  // namespace strata
