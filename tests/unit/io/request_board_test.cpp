#include "io/common/request_board.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "contract/io/io_testing.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

class PlainFile : public OpenFile {
 public:
  explicit PlainFile(std::uint64_t alignment)
      : OpenFile("plain", OpenMode::read_write_create), alignment_(alignment) {}
  std::uint64_t alignment() const override { return alignment_; }
  std::uint64_t size() const override { return 1 << 20; }
  std::uint64_t bytes_free() const override { return 0; }
  FileInfo info() const override { return {path(), size(), alignment_, false, ""}; }
  void preallocate(std::uint64_t) override {}
  void sync() override {}

 private:
  const std::uint64_t alignment_;
};

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
  FileId file_ = board_.add_file(std::make_shared<PlainFile>(4096));
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
