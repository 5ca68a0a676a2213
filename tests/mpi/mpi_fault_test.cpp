// A process that fails takes the others of its job down, each with an Error that says which and
// why, before mpirun kills them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fault/cli/process.hpp"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MpiFaults : public ::testing::Test {
 protected:
  static constexpr int ranks_per_process = 2;

  // Three processes, of which process 1 is odd.
  static ProcessResult run(const std::string& how) {
    return Process(::testing::TempDir(), {STRATA_MPI_LAUNCHER, "3", STRATA_MPI_ROUNDS, how, "1",
                                          std::to_string(ranks_per_process)})
        .wait();
  }
  // The line with which a rank of the odd process or of another one ended.
  static std::string end_of(int rank, const ProcessResult& result) {
    const std::string begin = "rank " + std::to_string(rank) + " ends: ";
    const std::size_t at = result.err.find(begin);
    return at == std::string::npos ? "" : result.err.substr(at, result.err.find('\n', at) - at);
  }
  static void expect_others_to_name(const std::string& cause, const ProcessResult& result) {
    for (int rank = 0; rank < 3 * ranks_per_process; ++rank) {
      if (rank / ranks_per_process == 1) continue;
      EXPECT_THAT(end_of(rank, result), HasSubstr(cause)) << result.err;
    }
  }
};

TEST_F(MpiFaults, AreNoneInAJobThatEndsWell) {
  const ProcessResult result = run("well");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (int rank = 0; rank < 3 * ranks_per_process; ++rank)
    EXPECT_THAT(result.err, HasSubstr("rank " + std::to_string(rank) + " is done"));
  EXPECT_THAT(result.err, Not(HasSubstr("mpirun")));
}

TEST_F(MpiFaults, EndTheOthersOfAProcessThatIsKilled) {
  const ProcessResult result = run("killed");
  EXPECT_NE(result.exit_code, 0);
  expect_others_to_name("process 1", result);
}

TEST_F(MpiFaults, EndTheOthersOfAProcessThatExitsWithoutAWord) {
  const ProcessResult result = run("exits");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  expect_others_to_name("process 1", result);
}

TEST_F(MpiFaults, EndTheOthersOfARankThatAbortsWithItsReason) {
  const ProcessResult result = run("aborts");
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr(": the disk is full"));
  expect_others_to_name(": the disk is full", result);
}

TEST(MpiLaunch, IsRefusedWithoutMpirun) {
  const ProcessResult result =
      Process(
          ::testing::TempDir(), {STRATA_MPI_ROUNDS, "well", "0", "1"},
          {.limits = {}, .environment = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}}})
          .wait();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("MPI knows 1 processes and torchrun tells of 2"));
  EXPECT_THAT(result.err, HasSubstr("start with mpirun"));
}

}  // namespace
}  // namespace strata
