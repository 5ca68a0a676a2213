// A ring whose system call is refused.

#include "io/uring/ring_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata::testing {
namespace {

using ::testing::HasSubstr;

class RingLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      loop_.emplace(board_, 4, 64 * KiB, bell_, [this](io_uring& ring) { return enter(ring); });
    } catch (const SystemError& error) {
      GTEST_SKIP() << error.what();
    }
    file_ = board_.add_file(std::make_shared<PosixFile>(
        directory_.file("tiles"), OpenMode::read_write_create, Caching::buffered));
  }
  void TearDown() override {
    while (loop_ && board_.outstanding() > 0) loop_->turn();
  }
  int enter(io_uring& ring) {
    ++calls_;
    return refusal_ != 0 ? -refusal_ : Ring::enter(ring);
  }
  void submit(std::uint64_t offset, Outcome& outcome) {
    const IoRequest one = request(IoOp::write, file_, offset, data_.span(), &outcome);
    board_.submit({&one, 1});
  }
  void turn_until_told(const Outcome& outcome) {
    while (outcome.calls() == 0) loop_->turn();
  }

  TempDirectory directory_;
  const Buffer data_ = Buffer::random(8 * KiB, 1);
  EventDescriptor bell_;
  RequestBoard board_{64 * KiB};
  FileId file_;
  int refusal_ = 0;
  int calls_ = 0;
  std::optional<RingLoop> loop_;
};

TEST_F(RingLoopTest, SurvivesAKernelThatRefusesForAWhile) {
  Outcome outcome;
  submit(0, outcome);
  refusal_ = ENOMEM;
  for (int turn = 0; turn < 50; ++turn) loop_->turn();
  EXPECT_EQ(outcome.calls(), 0);
  refusal_ = 0;
  turn_until_told(outcome);
  EXPECT_TRUE(outcome.wait().ok()) << outcome.wait().message;
}

TEST_F(RingLoopTest, FailsWhatTheKernelGoesOnRefusingAndWorksAgainWhenItDoes) {
  refusal_ = EBADF;
  std::vector<Outcome> refused(6);  // more than may be in flight
  for (std::size_t index = 0; index < refused.size(); ++index) {
    submit(index * 8 * KiB, refused[index]);
  }
  for (const Outcome& outcome : refused) turn_until_told(outcome);
  EXPECT_LT(calls_, 20000);
  EXPECT_TRUE(loop_->idle());
  for (Outcome& outcome : refused) {
    EXPECT_EQ(outcome.calls(), 1);
    EXPECT_EQ(outcome.wait().error_number, EBADF);
    EXPECT_THAT(outcome.wait().message, HasSubstr("io_uring_enter was refused"));
    EXPECT_THAT(outcome.wait().message, HasSubstr(directory_.file("tiles")));
  }
  refusal_ = 0;
  for (std::uint64_t round = 0; round < 20; ++round) {
    Outcome outcome;
    submit(round * 8 * KiB, outcome);
    bell_.signal();
    turn_until_told(outcome);
    EXPECT_TRUE(outcome.wait().ok()) << outcome.wait().message;
  }
  const auto bytes = posix_file_system().read_file(directory_.file("tiles"), 1 * MiB);
  ASSERT_EQ(bytes.size(), 20 * 8 * KiB);
  for (std::uint64_t round = 0; round < 20; ++round) {
    const auto part = std::span(bytes).subspan(round * 8 * KiB, 8 * KiB);
    EXPECT_TRUE(std::ranges::equal(part, data_.span()));
  }
}

TEST_F(RingLoopTest, HandsABatchToTheKernelInOneCall) {
  std::vector<Outcome> outcomes(4);
  for (std::size_t index = 0; index < outcomes.size(); ++index) {
    submit(index * 8 * KiB, outcomes[index]);
  }
  loop_->turn();
  EXPECT_EQ(calls_, 1);
  EXPECT_FALSE(board_.take().has_value()) << "the kernel has all of them";
  for (const Outcome& outcome : outcomes) turn_until_told(outcome);
}

}  // namespace
}  // namespace strata::testing
