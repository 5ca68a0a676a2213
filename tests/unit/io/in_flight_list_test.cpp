#include "io/common/in_flight_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "unit/io/plain_open_file.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t second_ns = 1'000'000'000, stall_ns = 10 * second_ns;

class InFlightListTest : public ::testing::Test {
 protected:
  std::size_t begin(const std::string& path, std::int64_t at_seconds, IoOp op = IoOp::read) {
    ActiveRequest& active = requests_.emplace_back();
    active.file = std::make_shared<PlainOpenFile>(path, 1);
    active.request.op = op;
    active.request.offset = 1000;
    Piece piece;
    piece.active = &active;
    piece.start = 24;
    piece.bytes = 4096;
    return list_.begin(piece, at_seconds * second_ns);
  }
  StallCheck check(std::int64_t at_seconds) {
    return list_.check(at_seconds * second_ns, stall_ns);
  }

  std::deque<ActiveRequest> requests_;
  InFlightList list_{4};
};

TEST_F(InFlightListTest, HasNothingToSayWhenNothingIsInFlight) {
  const StallCheck result = check(1000);
  EXPECT_FALSE(result.silent_seconds.has_value());
  EXPECT_EQ(result.next_ns, 1010 * second_ns);
  list_.end(begin("/a", 0), 1 * second_ns);
  EXPECT_FALSE(check(1000).silent_seconds.has_value());
}

TEST_F(InFlightListTest, ListsAllThatIsInFlightWhenTheOldestHasBeenOutForSoLong) {
  begin("/a", 0);
  begin("/b", 6, IoOp::write);
  EXPECT_FALSE(check(9).silent_seconds.has_value());
  EXPECT_EQ(check(9).next_ns, 10 * second_ns);
  const StallCheck result = check(11);
  EXPECT_DOUBLE_EQ(result.silent_seconds.value(), 11);
  EXPECT_EQ(result.in_flight,
            "read of /a: 4096 bytes at offset 1024, for 11 s; "
            "write to /b: 4096 bytes at offset 1024, for 5 s");
}

TEST_F(InFlightListTest, RepeatsItselfOnlyWhenAsLongHasPassedWithoutNews) {
  begin("/a", 0);
  const std::size_t other = begin("/b", 9);
  EXPECT_TRUE(check(10).silent_seconds.has_value());
  EXPECT_FALSE(check(11).silent_seconds.has_value());
  list_.end(other, 15 * second_ns);
  EXPECT_FALSE(check(21).silent_seconds.has_value());
  EXPECT_EQ(check(21).next_ns, 25 * second_ns);
  const StallCheck again = check(25);
  EXPECT_DOUBLE_EQ(again.silent_seconds.value(), 10) << "since something came back";
  EXPECT_THAT(again.in_flight, HasSubstr("/a"));
  EXPECT_THAT(again.in_flight, Not(HasSubstr("/b")));
}

TEST_F(InFlightListTest, TellsOfEachPieceThatStallsThoughOthersWereTold) {
  begin("/a", 0);
  EXPECT_TRUE(check(10).silent_seconds.has_value());
  begin("/b", 12);
  EXPECT_TRUE(check(20).silent_seconds.has_value()) << "/a again";
  EXPECT_FALSE(check(21).silent_seconds.has_value());
  EXPECT_TRUE(check(22).silent_seconds.has_value()) << "/b for the first time";
}

TEST_F(InFlightListTest, TellsOfAKeptPieceWithoutBlamingADriveThatGivesOthersBack) {
  begin("/a", 0);
  for (int second = 1; second < 10; ++second)
    list_.end(begin("/b", second), second * second_ns + second_ns / 2);
  const StallCheck result = check(10);
  EXPECT_DOUBLE_EQ(result.silent_seconds.value(), 0.5);
  EXPECT_THAT(result.in_flight, HasSubstr("/a: 4096 bytes at offset 1024, for 10 s"));
}

TEST_F(InFlightListTest, WasSilentOnlySinceSomethingWasIn) {
  list_.end(begin("/a", 0), 1 * second_ns);
  begin("/b", 1000);
  EXPECT_DOUBLE_EQ(check(1010).silent_seconds.value(), 10);
}

TEST_F(InFlightListTest, DoesNotCountAPause) {
  begin("/a", 0);
  list_.end(begin("/b", 2), 4 * second_ns);
  begin("/c", 1003);
  list_.forget_pause(1000 * second_ns, 1005 * second_ns);
  EXPECT_FALSE(check(1009).silent_seconds.has_value());
  const StallCheck result = check(1010);
  EXPECT_DOUBLE_EQ(result.silent_seconds.value(), 6);
  EXPECT_THAT(result.in_flight, AllOf(HasSubstr("for 10 s"), HasSubstr("for 5 s")));
  EXPECT_FALSE(check(1014).silent_seconds.has_value());
  EXPECT_TRUE(check(1020).silent_seconds.has_value()) << "all again";
}

TEST_F(InFlightListTest, UsesItsPlacesAgain) {
  const std::size_t first = begin("/a", 0);
  list_.end(first, 1);
  EXPECT_EQ(begin("/b", 2), first);
}

}  // namespace
}  // namespace strata::testing
