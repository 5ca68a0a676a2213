// What has begun is not cut short: peers read a rank's memory until all have done their part.

#include "src/comm/local/rendezvous.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "strata/core/error.hpp"

namespace strata {
namespace {

TEST(Rendezvous, HoldsARankThatIsDoneUntilItsPeersAreEvenWhenTheJobFails) {
  JobFailure job;
  Rendezvous line(2, {}, job);
  std::atomic<bool> has_returned = false;
  std::jthread peer([&] {
    line.enter(1, {});
    line.finish_part();
    has_returned = true;
  });
  line.enter(0, {});
  job.fail(job.lock(), "disk is full");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(has_returned);
  line.finish_part();
  peer.join();
  EXPECT_TRUE(has_returned);
  EXPECT_THROW(line.enter(0, {}), Error);
}

TEST(Rendezvous, FinishesACollectiveInAsManyPartsAsItHas) {
  JobFailure job;
  Rendezvous line(2, {}, job);
  std::atomic<int> parts = 0;
  std::jthread peer([&] {
    line.enter(1, {});
    for (int part = 0; part < 3; ++part) {
      ++parts;
      line.finish_part();
    }
  });
  line.enter(0, {});
  for (int part = 1; part <= 3; ++part) {
    line.finish_part();
    EXPECT_GE(parts, part);
  }
}

}  // namespace
}  // namespace strata
