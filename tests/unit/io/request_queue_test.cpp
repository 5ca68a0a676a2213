#include "io/common/request_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "contract/io/io_testing.hpp"

namespace strata {
namespace {

class RequestQueueTest : public ::testing::Test {
 protected:
  ActiveRequest& make(IoPriority priority, const IoCompletion* completion = nullptr) {
    ActiveRequest& active = requests_.emplace_back();
    active.request.priority = priority;
    active.request.completion = const_cast<IoCompletion*>(completion);
    active.sequence = ++sequence_;
    return active;
  }
  std::deque<ActiveRequest> requests_;
  std::uint64_t sequence_ = 0;
  RequestQueue queue_;
};

TEST_F(RequestQueueTest, GivesNothingWhenEmpty) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.next(), nullptr);
}

TEST_F(RequestQueueTest, ServesClassesInOrderAndFirstComeFirstServedWithin) {
  auto &late = make(IoPriority::write_back), &early = make(IoPriority::prefetch);
  auto &first = make(IoPriority::now), &second = make(IoPriority::now);
  for (ActiveRequest* one : {&late, &early, &first, &second}) queue_.push(*one);
  for (ActiveRequest* expected : {&first, &second, &early, &late}) {
    ActiveRequest* got = queue_.next();
    EXPECT_EQ(got, expected);
    queue_.pop(*got);
  }
  EXPECT_TRUE(queue_.empty());
}

TEST_F(RequestQueueTest, StaysWithARequestUntilItIsPopped) {
  auto& one = make(IoPriority::prefetch);
  queue_.push(one);
  EXPECT_EQ(queue_.next(), &one);
  EXPECT_EQ(queue_.next(), &one);
  EXPECT_TRUE(one.queued);
  queue_.pop(one);
  EXPECT_FALSE(one.queued);
}

TEST_F(RequestQueueTest, LetsTheOldestLowerRequestInEveryEighthTurn) {
  auto &back = make(IoPriority::write_back), &ahead = make(IoPriority::prefetch);
  auto& urgent = make(IoPriority::now);
  for (ActiveRequest* one : {&back, &ahead, &urgent}) queue_.push(*one);
  for (std::uint64_t round = 0; round < 3; ++round) {
    for (std::uint64_t turn = 1; turn < RequestQueue::turns_per_lower_turn; ++turn) {
      EXPECT_EQ(queue_.next(), &urgent);
    }
    EXPECT_EQ(queue_.next(), &back);  // submitted before `ahead`
  }
}

// However much of the higher classes arrives, the lowest waits for eight turns per older request of
// the lower classes, and eight of its own.
TEST_F(RequestQueueTest, BoundsTheWaitOfTheLowestClassUnderAStreamOfTheOthers) {
  for (const std::uint64_t older : {0, 1, 5, 20}) {
    SCOPED_TRACE(older);
    queue_ = {};
    for (std::uint64_t index = 0; index < older; ++index) queue_.push(make(IoPriority::prefetch));
    auto& lowest = make(IoPriority::write_back);
    queue_.push(lowest);
    std::uint64_t turns = 0;
    for (ActiveRequest* next = nullptr; next != &lowest && turns < 1000; ++turns) {
      queue_.push(make(IoPriority::now));
      queue_.push(make(IoPriority::prefetch));
      next = queue_.next();
      queue_.pop(*next);
    }
    EXPECT_LE(turns, RequestQueue::turns_per_lower_turn * (older + 1));
  }
}

TEST_F(RequestQueueTest, TakesOutWhatCarriesACompletionAndKeepsTheOrderOfTheRest) {
  const testing::Outcome mine, others;
  auto &first = make(IoPriority::now, &mine), &second = make(IoPriority::now, &others);
  auto &third = make(IoPriority::now, &mine), &back = make(IoPriority::write_back, &mine);
  auto& fourth = make(IoPriority::now, &others);
  for (ActiveRequest* one : {&first, &second, &third, &back, &fourth}) queue_.push(*one);
  std::set<ActiveRequest*> taken;
  for (ActiveRequest* one = queue_.take_out(mine); one != nullptr; one = one->next) {
    EXPECT_FALSE(one->queued);
    taken.insert(one);
  }
  EXPECT_EQ(taken, (std::set{&first, &third, &back}));
  for (ActiveRequest* expected : {&second, &fourth}) {
    ActiveRequest* got = queue_.next();
    EXPECT_EQ(got, expected);
    queue_.pop(*got);
  }
  EXPECT_TRUE(queue_.empty());
  queue_.push(first);
  EXPECT_EQ(queue_.next(), &first);
}

TEST_F(RequestQueueTest, TakesNewRequestsAfterALineRanEmpty) {
  auto &one = make(IoPriority::now), &two = make(IoPriority::now);
  queue_.push(one);
  queue_.pop(*queue_.next());
  queue_.push(two);
  EXPECT_EQ(queue_.next(), &two);
}

}  // namespace
}  // namespace strata
