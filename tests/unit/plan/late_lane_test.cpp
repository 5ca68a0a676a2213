#include "strata/plan/late_lane.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(LateLane, BlamesAnOpsOwnLaneWhenNothingKeptItWaiting) {
  LateLane<int> late;
  EXPECT_EQ(late.begin(Lane::h2d, 0, Lane::compute), Lane::h2d);
}

TEST(LateLane, PassesTheBlameOnToWhatQueuesBehindUntilTheWaitIsWorkedOff) {
  LateLane<int> late;
  EXPECT_EQ(late.begin(Lane::h2d, 10, Lane::state_read), Lane::state_read);
  late.worked(4);
  EXPECT_EQ(late.begin(Lane::h2d, 0, Lane::h2d), Lane::state_read) << "still late by 6";
  late.worked(6);
  EXPECT_EQ(late.begin(Lane::h2d, 0, Lane::h2d), Lane::h2d) << "would have been as late by itself";
}

TEST(LateLane, BlamesTheLastWait) {
  LateLane<int> late;
  late.begin(Lane::h2d, 10, Lane::state_read);
  EXPECT_EQ(late.begin(Lane::h2d, 3, Lane::update), Lane::update);
  late.worked(3);
  EXPECT_EQ(late.begin(Lane::h2d, 0, Lane::h2d), Lane::h2d);
}

TEST(LateLane, LeavesTransfersOfDrivesToThemselves) {
  LateLane<int> late;
  EXPECT_EQ(late.begin(Lane::read, 10, Lane::update), Lane::update);
  EXPECT_EQ(late.begin(Lane::read, 0, Lane::read), Lane::read) << "they do not queue on the lane";
}

}  // namespace
}  // namespace strata
