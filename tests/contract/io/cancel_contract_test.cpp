// Giving requests up, on every engine. How many are still waiting when cancel() comes is the
// machine's affair; that the count returned, the completions and the bytes agree is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <latch>
#include <thread>

#include "contract/io/engine_cases.hpp"

namespace strata::testing {
namespace {

class CancelContract : public EngineTest {
 protected:
  static constexpr std::uint64_t bytes_ = 96 * KiB;  // two pieces
  static constexpr std::uint64_t targets_max_ = 120;

  // Writes all have one source; each read has a target of its own, from the `first` on.
  std::vector<IoRequest> requests_of(IoOp op, FileId file, std::uint64_t count,
                                     IoCompletion& completion, std::uint64_t first = 0) const {
    std::vector<IoRequest> requests;
    for (std::uint64_t index = 0; index < count; ++index) {
      const auto target = targets_.span().subspan((first + index) * bytes_, bytes_);
      const auto memory = op == IoOp::read ? target : memory_.span();
      requests.push_back(request(op, file, index * bytes_, memory, &completion));
    }
    return requests;
  }

  const Buffer memory_ = Buffer::random(bytes_, 1);
  const Buffer targets_{targets_max_ * bytes_};
};

INSTANTIATE_TEST_SUITE_P(Engines, CancelContract, ::testing::ValuesIn(engine_cases()),
                         [](const auto& engine) { return engine.param.name; });

// Counts how the requests that share it have ended.
class Tally : public IoCompletion {
 public:
  void complete(const IoResult& result) noexcept override {
    if (result.ok()) ++num_done;
    if (result.error_number == ECANCELED) ++num_cancelled;
    ++num_told;
  }
  std::atomic<std::size_t> num_done = 0, num_cancelled = 0, num_told = 0;
};

TEST_P(CancelContract, GivesUpNothingForACompletionThatNobodyHasSent) {
  const FileId file = open("tiles");
  const Outcome unknown;
  Outcome known;
  EXPECT_EQ(engine_->cancel(unknown), 0u);
  const IoRequest one = request(IoOp::write, file, 0, memory_.span(), &known);
  engine_->submit({&one, 1});
  EXPECT_EQ(engine_->cancel(unknown), 0u);
  EXPECT_TRUE(known.wait().ok());
  EXPECT_EQ(engine_->cancel(known), 0u);
  EXPECT_EQ(known.calls(), 1);
}

TEST_P(CancelContract, CompletesEveryRequestOnceAndCountsThoseGivenUp) {
  constexpr std::uint64_t count = 64;
  const FileId file = open("tiles");
  engine_->preallocate(file, count * bytes_);
  for (const IoOp op : {IoOp::write, IoOp::read}) {
    Tally tally, kept;
    auto requests = requests_of(op, file, count, tally);
    requests[count / 2].completion = &kept;
    engine_->submit(requests);
    const std::size_t num_given_up = engine_->cancel(tally);
    engine_->drain();
    EXPECT_EQ(tally.num_told, count - 1);
    EXPECT_EQ(tally.num_cancelled, num_given_up);
    EXPECT_EQ(tally.num_done, count - 1 - num_given_up);
    EXPECT_EQ(kept.num_done, 1u);
  }
}

TEST_P(CancelContract, SaysWhatWasGivenUp) {
  constexpr std::uint64_t count = 64;
  const FileId file = open("tiles");
  std::vector<Outcome> outcomes(count);
  auto requests = requests_of(IoOp::write, file, count, outcomes[0]);
  for (std::uint64_t index = 0; index < count; ++index) {
    requests[index].completion = &outcomes[index];
  }
  engine_->submit(requests);
  for (std::uint64_t index = count; index > 0; --index) {
    const bool given_up = engine_->cancel(outcomes[index - 1]) == 1;
    const IoResult result = outcomes[index - 1].wait();
    EXPECT_EQ(result.error_number, given_up ? ECANCELED : 0);
    if (!given_up) continue;
    EXPECT_THAT(result.message, ::testing::HasSubstr("given up"));
    EXPECT_THAT(result.message, ::testing::HasSubstr(directory_.file("tiles")));
  }
}

TEST_P(CancelContract, LeavesTheMemoryOfACompletedRequestAlone) {
  const FileId file = open("tiles");
  write(file, 0, memory_);
  for (int round = 0; round < 20; ++round) {
    // Freed as soon as the completion has come: the address sanitizer sees who comes late.
    const auto target = std::make_unique<Buffer>(bytes_);
    Outcome outcome;
    const IoRequest one = request(IoOp::read, file, 0, target->span(), &outcome);
    engine_->submit({&one, 1});
    engine_->cancel(outcome);
    EXPECT_TRUE(!outcome.wait().ok() || *target == memory_);
  }
}

TEST_P(CancelContract, IsSafeWhileOthersReadAndWrite) {
  constexpr std::uint64_t rounds = 10, count = targets_max_ / rounds;
  const FileId file = open("tiles");
  engine_->preallocate(file, count * bytes_);
  Tally writes, reads;
  const auto submit_rounds = [&](IoOp op, Tally& tally) {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      engine_->submit(requests_of(op, file, count, tally, round * count));
    }
  };
  std::atomic<bool> over = false;
  std::size_t num_given_up = 0;
  std::thread writer([&] { submit_rounds(IoOp::write, writes); });
  std::thread reader([&] { submit_rounds(IoOp::read, reads); });
  std::thread canceller([&] {
    while (!over) num_given_up += engine_->cancel(reads);
  });
  writer.join();
  reader.join();
  engine_->drain();
  over = true;
  canceller.join();
  EXPECT_EQ(writes.num_done, count * rounds);
  EXPECT_EQ(reads.num_told, count * rounds);
  EXPECT_EQ(reads.num_cancelled, num_given_up);
}

TEST_P(CancelContract, LetsAFileCloseWhoseRequestsWereGivenUp) {
  const FileId file = open("tiles");
  Tally tally;
  engine_->submit(requests_of(IoOp::write, file, 64, tally));
  engine_->cancel(tally);
  engine_->close(file);
  EXPECT_EQ(tally.num_told, 64u);
}

// Holds the thread that completes it.
class HeldOutcome : public Outcome {
 public:
  void complete(const IoResult& result) noexcept override {
    is_held_.count_down();
    let_go_.wait();
    Outcome::complete(result);
  }
  void wait_until_held() { is_held_.wait(); }
  void let_go() { let_go_.count_down(); }

 private:
  std::latch is_held_{1}, let_go_{1};
};

// Its one thread is held by the first request.
TEST(Cancel, GivesUpWhatASlowDiskHasNotBegun) {
  const auto engine = make_sim_engine({.seed = 2, .chunk_bytes = 4 * KiB});
  const FileId file = engine->open("/sim/tiles", OpenMode::read_write_create, Caching::direct);
  const auto data = Buffer::random(MiB, 1);
  HeldOutcome first;
  Outcome last;
  const IoRequest begun = request(IoOp::write, file, 0, data.span().first(64 * KiB), &first);
  engine->submit({&begun, 1});
  first.wait_until_held();
  const IoRequest waiting = request(IoOp::write, file, 64 * KiB, data.span(), &last);
  engine->submit({&waiting, 1});
  EXPECT_EQ(engine->cancel(last), 1u);
  first.let_go();
  EXPECT_EQ(last.wait().error_number, ECANCELED);
  EXPECT_TRUE(first.wait().ok());
  EXPECT_GE(engine->info(file).bytes, 64 * KiB);
  EXPECT_LT(engine->info(file).bytes, 64 * KiB + MiB);
}

}  // namespace
}  // namespace strata::testing
