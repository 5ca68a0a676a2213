#include "io/common/request_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace strata {
namespace {

class RequestQueueTest : public ::testing::Test {
 protected:
  ActiveRequest make(IoPriority priority) {
    ActiveRequest active;
    active.request.priority = priority;
    active.sequence = ++sequence_;
    return active;
  }
  std::uint64_t sequence_ = 0;
  RequestQueue queue_;
};

TEST_F(RequestQueueTest, GivesNothingWhenEmpty) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.next(), nullptr);
}

TEST_F(RequestQueueTest, ServesClassesInOrderAndFirstComeFirstServedWithin) {
  auto late = make(IoPriority::write_back), early = make(IoPriority::prefetch);
  auto first = make(IoPriority::now), second = make(IoPriority::now);
  for (ActiveRequest* one : {&late, &early, &first, &second}) queue_.push(*one);
  for (ActiveRequest* expected : {&first, &second, &early, &late}) {
    ActiveRequest* got = queue_.next();
    EXPECT_EQ(got, expected);
    queue_.pop(*got);
  }
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RequestQueueTest, StaysWithARequestUntilItIsPopped) {
  auto one = make(IoPriority::prefetch);
  queue_.push(one);
  EXPECT_EQ(queue_.next(), &one);
  EXPECT_EQ(queue_.next(), &one);
  EXPECT_TRUE(one.queued);
  queue_.pop(one);
  EXPECT_FALSE(one.queued);
}

TEST_F(RequestQueueTest, LetsTheOldestLowerRequestInEveryEighthTurn) {
  auto back = make(IoPriority::write_back), ahead = make(IoPriority::prefetch);
  auto urgent = make(IoPriority::now);
  for (ActiveRequest* one : {&back, &ahead, &urgent}) queue_.push(*one);
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t turn = 1; turn < RequestQueue::turns_per_lower_turn; ++turn) {
      EXPECT_EQ(queue_.next(), &urgent);
    }
    EXPECT_EQ(queue_.next(), &back);  // submitted before `ahead`
  }
}

TEST_F(RequestQueueTest, TakesNewRequestsAfterALineRanEmpty) {
  auto one = make(IoPriority::now), two = make(IoPriority::now);
  queue_.push(one);
  queue_.pop(*queue_.next());
  queue_.push(two);
  EXPECT_EQ(queue_.next(), &two);
}

}  // namespace
}  // namespace strata
