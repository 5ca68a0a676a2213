#include "src/comm/process/group_board.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/core/error.hpp"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(GroupBoard, BringsTheTextsOfARoundByProcess) {
  GroupBoard board(3);
  EXPECT_EQ(board.begin_round(), 1u);
  EXPECT_TRUE(board.put_text(2, 1, "c"));
  EXPECT_TRUE(board.put_text(0, 1, "a"));
  EXPECT_TRUE(board.put_text(1, 1, "b"));
  EXPECT_THAT(board.wait_texts(1), ElementsAre("a", "b", "c"));
  EXPECT_EQ(board.begin_round(), 2u);
}

TEST(GroupBoard, KeepsARoundWhileTheNextBegins) {
  GroupBoard board(2);
  EXPECT_TRUE(board.put_text(0, 1, "a"));
  EXPECT_TRUE(board.put_text(1, 1, "b"));
  EXPECT_TRUE(board.put_text(1, 2, "next"));
  EXPECT_THAT(board.wait_texts(1), ElementsAre("a", "b"));
}

TEST(GroupBoard, RefusesTextsOutOfTurn) {
  GroupBoard board(2);
  EXPECT_FALSE(board.put_text(1, 0, "early"));
  EXPECT_FALSE(board.put_text(1, 2, "late"));
  EXPECT_TRUE(board.put_text(1, 1, "b"));
  EXPECT_FALSE(board.put_text(1, 1, "again"));
  EXPECT_FALSE(board.put_text(1, 2, "late"));
}

TEST(GroupBoard, EndsAWaitForAProcessThatHasLeft) {
  GroupBoard board(3);
  EXPECT_TRUE(board.put_text(0, 1, "a"));
  board.set_left(1, "process 1", false);
  EXPECT_THAT([&] { board.wait_texts(1); }, ThrowsMessage<Error>(HasSubstr("process 1 has left")));
  EXPECT_THROW(board.begin_round(), Error);
}

TEST(GroupBoard, EndsARoundThatAProcessGaveToBeforeItLeft) {
  GroupBoard board(2);
  EXPECT_TRUE(board.put_text(1, 1, "b"));
  board.set_left(1, "process 1", false);
  EXPECT_EQ(board.begin_round(), 1u);
  EXPECT_TRUE(board.put_text(0, 1, "a"));
  EXPECT_THAT(board.wait_texts(1), ElementsAre("a", "b"));
  EXPECT_THROW(board.begin_round(), Error);
}

TEST(GroupBoard, EndsAWaitWhenWhoPassesTextsOnHasLeft) {
  GroupBoard board(3);
  EXPECT_TRUE(board.put_text(0, 1, "a"));
  board.set_left(0, "process 0", true);
  EXPECT_THAT([&] { board.wait_texts(1); }, ThrowsMessage<Error>(HasSubstr("process 0 has left")));
}

TEST(GroupBoard, TellsTheFirstFailure) {
  GroupBoard board(2);
  board.fail("first");
  board.fail("second");
  EXPECT_THAT([&] { board.wait_texts(1); }, ThrowsMessage<Error>(std::string("first")));
  EXPECT_THAT([&] { board.begin_round(); }, ThrowsMessage<Error>(std::string("first")));
}

TEST(GroupBoard, EndsNoRoundAfterAFailure) {
  GroupBoard board(2);
  EXPECT_TRUE(board.put_text(0, 1, "a"));
  board.fail("why");
  EXPECT_TRUE(board.put_text(1, 1, "b"));
  EXPECT_THAT([&] { board.wait_texts(1); }, ThrowsMessage<Error>(std::string("why")));
}

TEST(GroupBoard, StillBringsTheTextsOfARoundThatEndedBeforeAFailure) {
  GroupBoard board(1);
  EXPECT_TRUE(board.put_text(0, 1, "a"));
  board.fail("why");
  EXPECT_THAT(board.wait_texts(1), ElementsAre("a"));
}

TEST(GroupBoard, TellsThatAllHaveComeOrWhyNot) {
  GroupBoard joined(2), absent(2), differs(2);
  joined.set_joined();
  EXPECT_NO_THROW(joined.wait_joined());
  absent.refuse(GroupRefusal::absent, "who");
  EXPECT_THAT([&] { absent.wait_joined(); }, ThrowsMessage<Error>(std::string("who")));
  differs.refuse(GroupRefusal::differs, "what");
  EXPECT_THAT([&] { differs.wait_joined(); }, ThrowsMessage<ConfigError>(std::string("what")));
}

}  // namespace
}  // namespace strata
