#include "io/common/stall_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "contract/io/io_testing.hpp"
#include "unit/io/plain_open_file.hpp"

namespace strata::testing {
namespace {

// A watch over a board whose one piece never comes back, and a clock that can leap.
class StallWatchTest : public ::testing::Test {
 protected:
  StallWatchTest() {
    const IoRequest one = request(IoOp::read, file_, 0, memory_.span(), &outcome_);
    board_.submit({&one, 1});
    piece_ = *board_.take();
  }
  ~StallWatchTest() override { board_.finish(piece_); }

  RequestBoard board_{1 << 20};
  const FileId file_ = board_.add_file(std::make_shared<PlainOpenFile>("plain", 4096));
  const Buffer memory_{4096};
  Outcome outcome_;
  Piece piece_;
  std::atomic<std::int64_t> leap_ns_ = 0;
};

TEST_F(StallWatchTest, DoesNotCountTimeInWhichTheProcessWasStopped) {
  constexpr std::int64_t hour_ns = 3'600'000'000'000;
  constexpr double hour = 3600;
  int calls = 0;
  std::promise<double> before, after;
  {
    const auto tell = [&](double silent_seconds, const std::string&) {
      if (++calls == 1) before.set_value(silent_seconds);
      if (calls == 2) after.set_value(silent_seconds);
    };
    StallWatch watch(tell, 0.05, [&] { return now_ns() + leap_ns_; });
    watch.add(board_);
    EXPECT_LT(before.get_future().get(), hour / 2);
    leap_ns_ = hour_ns;
    EXPECT_LT(after.get_future().get(), hour / 2);
  }
}

TEST_F(StallWatchTest, TellsAgainWhileNothingComesBack) {
  std::atomic<int> calls = 0;
  std::promise<void> thrice;
  const auto tell = [&](double silent_seconds, const std::string& in_flight) {
    EXPECT_GE(silent_seconds, 0.01);
    EXPECT_THAT(in_flight, ::testing::HasSubstr("plain"));
    if (++calls == 3) thrice.set_value();
  };
  StallWatch watch(tell, 0.01);
  watch.add(board_);
  thrice.get_future().wait();
}

}  // namespace
}  // namespace strata::testing
