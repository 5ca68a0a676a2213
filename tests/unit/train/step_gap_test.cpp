#include "src/train/step_gap.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

// compute 0..4, then d2h 1 copies what it left, update 2 sums it, update 3 reports.
class StepGapTest : public ::testing::Test {
 protected:
  StepGapTest() {
    add(Lane::compute, OpKind::run, {});
    add(Lane::d2h, OpKind::copy, {{OpId{0}}});
    add(Lane::update, OpKind::accumulate, {{OpId{1}}});
    add(Lane::update, OpKind::report, {{OpId{0}}});
  }
  void add(Lane lane, OpKind kind, std::vector<Edge> after) {
    Op op;
    op.id = OpId{static_cast<std::int32_t>(schedule_.ops.size())};
    op.kind = kind;
    op.lane = lane;
    op.after = std::move(after);
    schedule_.lanes[static_cast<std::size_t>(lane)].push_back(op.id);
    schedule_.ops.push_back(std::move(op));
  }
  // The next step's first op, which is the compute lane's, starts at `at`.
  StepGap gap_until(double at) const {
    return step_gap(schedule_, before_, std::vector<OpTime>(4, OpTime{OpId{0}, at, at + 1}));
  }
  static double of(const StepGap& gap, Lane lane) {
    return gap.lanes[static_cast<std::size_t>(lane)];
  }

  Schedule schedule_;
  const std::vector<OpTime> before_{
      {OpId{0}, 0, 4}, {OpId{1}, 4, 6}, {OpId{2}, 6.5, 9}, {OpId{3}, 9, 10}};
};

TEST_F(StepGapTest, IsFollowedBackFromTheReportToTheLastOfTheComputeLane) {
  const StepGap gap = gap_until(10.25);
  EXPECT_EQ(of(gap, Lane::update), 4);  // 6..10: that it began late is its own fault
  EXPECT_EQ(of(gap, Lane::d2h), 2);
  EXPECT_EQ(of(gap, Lane::compute), 0);
  EXPECT_EQ(gap.loop, 0.25);
}

TEST_F(StepGapTest, IsNoneWhereTheNextStepBeganBeforeTheComputeLaneWasDone) {
  const StepGap gap = gap_until(3);
  for (const double wait : gap.lanes) EXPECT_EQ(wait, 0);
  EXPECT_EQ(gap.loop, 0);
}

TEST_F(StepGapTest, IsTheLoopsWhereTheResultWasThereBefore) {
  schedule_.ops[3].kind = OpKind::norm;
  schedule_.ops[1].kind = OpKind::report;  // reported at 6
  const StepGap gap = gap_until(8);
  EXPECT_EQ(of(gap, Lane::d2h), 2);
  EXPECT_EQ(of(gap, Lane::update), 0);
  EXPECT_EQ(gap.loop, 2);
}

}  // namespace
}  // namespace strata
