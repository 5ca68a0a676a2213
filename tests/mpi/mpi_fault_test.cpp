// A process that fails takes the others of its job down, each with an Error that says which and
// why. By default mpirun kills them some seconds later, whether a busy machine has let them run or
// not: so what they say is looked at where it does not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fault/cli/process.hpp"
#include "mpi/left_alone.hpp"

namespace strata {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

// Tests that run at the same time write to folders of their own.
class MpiProcesses : public ::testing::Test {
 protected:
  MpiProcesses() {
    std::string pattern = ::testing::TempDir() + "strata-mpi-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~MpiProcesses() override { fs::remove_all(folder_); }

  Process start(const std::vector<std::string>& arguments,
                const std::map<std::string, std::string>& environment) const {
    return Process(folder_, arguments, {.limits = {}, .environment = environment});
  }

 private:
  fs::path folder_;
};

class MpiFaults : public MpiProcesses {
 protected:
  static constexpr int ranks_per_process = 2;

  // Three processes, of which process 1 is odd.
  Process start_rounds(const std::string& how,
                       const std::map<std::string, std::string>& environment) const {
    return start(
        {STRATA_MPI_LAUNCHER, "3", STRATA_MPI_ROUNDS, how, "1", std::to_string(ranks_per_process)},
        environment);
  }
  ProcessResult run(const std::string& how,
                    const std::map<std::string, std::string>& environment = left_alone) const {
    return start_rounds(how, environment).wait();
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
  const ProcessResult result = run("well", {});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (int rank = 0; rank < 3 * ranks_per_process; ++rank)
    EXPECT_THAT(result.err, HasSubstr("rank " + std::to_string(rank) + " is done"));
  EXPECT_THAT(result.err, Not(HasSubstr("mpirun")));
}

TEST_F(MpiFaults, EndTheOthersOfAProcessThatIsKilled) {
  expect_others_to_name("process 1", run("killed"));
}

TEST_F(MpiFaults, EndTheOthersOfAProcessThatExitsWithoutAWord) {
  expect_others_to_name("process 1", run("exits"));
}

TEST_F(MpiFaults, EndTheOthersOfARankThatAbortsWithItsReason) {
  expect_others_to_name(": the disk is full", run("aborts"));
}

// The status is that of the process whose end mpirun sees first: of one that has lost another it
// is 1.
TEST_F(MpiFaults, EndMpirunWithTheStatusOfAProcessThatFailed) {
  EXPECT_THAT(run("killed", {}).exit_code, AnyOf(1, 128 + SIGKILL));
  EXPECT_THAT(run("exits", {}).exit_code, AnyOf(1, 3));
  EXPECT_EQ(run("aborts", {}).exit_code, 1);
}

// Over TCP MPI notices too, and may hold processes in its own retries: then one of them tells.
TEST_F(MpiFaults, AreToldWhereMpiNoticesThemToo) {
  std::map<std::string, std::string> over_tcp = left_alone;
  over_tcp["OMPI_MCA_btl"] = "self,tcp", over_tcp["OMPI_MCA_btl_tcp_if_include"] = "lo";
  Process job = start_rounds("killed", over_tcp);
  EXPECT_TRUE(job.wait_for_error("process 1 (pid ")) << job.err();
  job.kill(SIGTERM);
  job.wait();
}

TEST_F(MpiProcesses, AreRefusedWithoutMpirun) {
  const ProcessResult result = start({STRATA_MPI_ROUNDS, "well", "0", "1"},
                                     {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}})
                                   .wait();
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("MPI knows 1 processes and torchrun tells of 2"));
  EXPECT_THAT(result.err, HasSubstr("start with mpirun"));
}

}  // namespace
}  // namespace strata
