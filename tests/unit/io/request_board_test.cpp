#include "io/common/request_board.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "contract/io/io_testing.hpp"
#include "strata/core/error.hpp"
#include "unit/io/plain_open_file.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RequestBoardTest : public ::testing::Test {
 protected:
  void submit(std::uint64_t bytes, Outcome& outcome, IoPriority priority = IoPriority::now) {
    const IoRequest one =
        request(IoOp::read, file_, 0, memory_.span().first(bytes), &outcome, priority);
    board_.submit({&one, 1});
  }
  void finish(Piece& piece, std::int64_t result) {
    ASSERT_EQ(advance(piece, result), PieceStep::finished);
    board_.finish(piece);
  }

  RequestBoard board_{10000};
  FileId file_ = board_.add_file(std::make_shared<PlainOpenFile>("plain", 4096));
  Buffer memory_{64 * 1024};
};

TEST_F(RequestBoardTest, CutsARequestIntoAlignedPiecesAndCompletesItAfterTheLast) {
  Outcome outcome;
  submit(5 * 4096, outcome);
  std::vector<Piece> pieces;
  while (auto piece = board_.take()) pieces.push_back(*piece);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].bytes, 8192u);
  EXPECT_EQ(pieces[2].offset(), 4u * 4096);
  EXPECT_EQ(pieces[2].bytes, 4096u);
  for (Piece& piece : pieces) {
    EXPECT_EQ(outcome.calls(), 0);
    finish(piece, static_cast<std::int64_t>(piece.bytes));
  }
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_EQ(outcome.wait().bytes, 5u * 4096);
  EXPECT_EQ(board_.outstanding(), 0u);
}

TEST_F(RequestBoardTest, CutsNoMoreOfARequestThatFailedAndReportsTheFirstFailure) {
  Outcome outcome;
  submit(16 * 4096, outcome);
  auto first = *board_.take(), second = *board_.take();
  finish(second, -EIO);
  EXPECT_FALSE(board_.take().has_value());
  EXPECT_EQ(outcome.calls(), 0);
  finish(first, -ENOSPC);
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_EQ(outcome.wait().error_number, EIO);
  EXPECT_THAT(outcome.wait().message, ::testing::HasSubstr("8192 bytes in: Input/output error"));
}

TEST_F(RequestBoardTest, LetsAnUrgentRequestPassBetweenThePiecesOfAnother) {
  Outcome background, urgent;
  submit(16 * 4096, background, IoPriority::write_back);
  Piece first = *board_.take();
  submit(4096, urgent);
  Piece second = *board_.take();
  EXPECT_EQ(second.active->request.completion, &urgent);
  finish(second, 4096);
  EXPECT_EQ(urgent.calls(), 1);
  finish(first, 8192);
  while (auto piece = board_.take()) finish(*piece, static_cast<std::int64_t>(piece->bytes));
  EXPECT_TRUE(background.wait().ok());
}

TEST_F(RequestBoardTest, RetriesARefusalAndGivesUpInTheEnd) {
  Outcome outcome;
  submit(4096, outcome);
  Piece piece = *board_.take();
  int attempts = 1;
  while (advance(piece, -EAGAIN) == PieceStep::again) ++attempts;
  EXPECT_GT(attempts, 1000);
  EXPECT_EQ(piece.failure.error_number, EAGAIN);
  board_.finish(piece);
  EXPECT_FALSE(outcome.wait().ok());
}

TEST_F(RequestBoardTest, ContinuesAShortTransferFromAnAlignedByte) {
  Outcome outcome;
  submit(8192, outcome);
  Piece piece = *board_.take();
  EXPECT_EQ(advance(piece, 5000), PieceStep::again);
  EXPECT_EQ(piece.done, 4096u);
  EXPECT_EQ(advance(piece, -EINTR), PieceStep::again);
  finish(piece, 4096);
  EXPECT_TRUE(outcome.wait().ok());
}

TEST_F(RequestBoardTest, CompletesARequestGivenUpBeforeItsFirstPieceAtTheNextTurn) {
  Outcome outcome, other;
  submit(5 * 4096, outcome);
  submit(4096, other);
  EXPECT_EQ(board_.cancel(outcome), 1u);
  EXPECT_EQ(outcome.calls(), 0) << "on the engine's threads only";
  Piece piece = *board_.take();
  EXPECT_EQ(outcome.wait().error_number, ECANCELED);
  EXPECT_EQ(piece.active->request.completion, &other);
  finish(piece, 4096);
  EXPECT_EQ(board_.outstanding(), 0u);
}

TEST_F(RequestBoardTest, CutsNoMoreOfARequestThatWasGivenUpAndWaitsForWhatIsInFlight) {
  Outcome outcome;
  submit(16 * 4096, outcome);
  auto first = *board_.take(), second = *board_.take();
  EXPECT_EQ(board_.cancel(outcome), 1u);
  EXPECT_FALSE(board_.take().has_value());
  finish(first, 8192);
  EXPECT_EQ(outcome.calls(), 0);
  finish(second, -EIO);
  EXPECT_EQ(outcome.calls(), 1);
  EXPECT_EQ(outcome.wait().error_number, ECANCELED);
  EXPECT_EQ(outcome.wait().bytes, 0u);
  EXPECT_EQ(board_.cancel(outcome), 0u);
}

TEST_F(RequestBoardTest, DoesNotTryAgainAPieceOfARequestThatWasGivenUp) {
  Outcome outcome;
  submit(3 * 8192, outcome);
  Piece piece = *board_.take();
  EXPECT_EQ(advance(piece, -EAGAIN), PieceStep::again);
  EXPECT_EQ(board_.cancel(outcome), 1u);
  finish(piece, 4096);  // short
  EXPECT_EQ(outcome.wait().error_number, ECANCELED);
}

TEST_F(RequestBoardTest, LeavesARequestAloneWhoseLastPieceIsUnderWay) {
  Outcome outcome;
  submit(4096, outcome);
  Piece piece = *board_.take();
  EXPECT_EQ(board_.cancel(outcome), 0u);
  EXPECT_EQ(advance(piece, -EAGAIN), PieceStep::again);
  finish(piece, 4096);
  EXPECT_TRUE(outcome.wait().ok());
}

// A file whose file system asks, before it answers, whether the board does.
class SlowToAnswerFile : public PlainOpenFile {
 public:
  explicit SlowToAnswerFile(const RequestBoard& board)
      : PlainOpenFile("slow", 4096), board_(board) {}
  std::uint64_t bytes_free() const override {
    asked_ = std::async(std::launch::async, [this] { return board_.outstanding(); });
    board_answered_ = asked_.wait_for(std::chrono::minutes(1)) == std::future_status::ready;
    return 0;
  }
  bool board_answered() const { return board_answered_; }

 private:
  const RequestBoard& board_;
  mutable std::future<std::uint64_t> asked_;
  mutable bool board_answered_ = false;
};

TEST_F(RequestBoardTest, ServesOthersWhileTheFileSystemIsAskedAboutAFailure) {
  const auto slow = std::make_shared<SlowToAnswerFile>(board_);
  const FileId file = board_.add_file(slow);
  const auto submit_to_slow = [&](std::uint64_t offset, Outcome& outcome) {
    const IoRequest one = request(IoOp::read, file, offset, memory_.span(), &outcome);
    board_.submit({&one, 1});
  };
  Outcome refused, given_up;
  submit_to_slow(1, refused);
  EXPECT_FALSE(board_.take().has_value());
  EXPECT_EQ(refused.wait().error_number, EINVAL);
  EXPECT_THAT(refused.wait().message,
              AllOf(HasSubstr("offset 1 of slow: offset, length"), HasSubstr("0 B free on")));
  EXPECT_TRUE(slow->board_answered());
  submit_to_slow(0, given_up);
  EXPECT_EQ(board_.cancel(given_up), 1u);
  EXPECT_FALSE(board_.take().has_value());
  EXPECT_THAT(given_up.wait().message,
              AllOf(HasSubstr("of slow: it was given up; "), HasSubstr("free on its file system")));
  EXPECT_TRUE(slow->board_answered());
}

TEST_F(RequestBoardTest, ReusesItsNodes) {
  Outcome outcome;
  std::vector<ActiveRequest*> seen;
  for (int round = 0; round < 3; ++round) {
    submit(4096, outcome);
    Piece piece = *board_.take();
    seen.push_back(piece.active);
    finish(piece, 4096);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[1], seen[2]);
}

TEST_F(RequestBoardTest, ReturnsNothingAfterStop) {
  board_.stop();
  EXPECT_FALSE(board_.wait_and_take().has_value());
}

}  // namespace
}  // namespace strata::testing
