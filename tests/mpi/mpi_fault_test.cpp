// A process that fails takes the others of its job down, each with an Error that says which and
// why, before mpirun kills them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fault/cli/process.hpp"

namespace strata {
namespace {

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

  ProcessResult run_process(const std::vector<std::string>& arguments,
                            const std::map<std::string, std::string>& environment) const {
    return Process(folder_, arguments, {.limits = {}, .environment = environment}).wait();
  }

 private:
  fs::path folder_;
};

class MpiFaults : public MpiProcesses {
 protected:
  static constexpr int ranks_per_process = 2;

  // Three processes, of which process 1 is odd.
  ProcessResult run(const std::string& how,
                    const std::map<std::string, std::string>& environment = {}) const {
    return run_process(
        {STRATA_MPI_LAUNCHER, "3", STRATA_MPI_ROUNDS, how, "1", std::to_string(ranks_per_process)},
        environment);
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

// Over TCP MPI notices too, and may hold a process in its own retries until mpirun has killed all:
// then one of the others tells.
TEST_F(MpiFaults, AreToldWhereMpiNoticesThemToo) {
  const ProcessResult result =
      run("killed", {{"OMPI_MCA_btl", "self,tcp"}, {"OMPI_MCA_btl_tcp_if_include", "lo"}});
  EXPECT_NE(result.exit_code, 0);
  const auto is_told_by = [&](int process) {
    const std::string teller = "process " + std::to_string(process) + " tells: process 1 (pid ";
    return result.err.find(teller) != std::string::npos ||
           end_of(process * ranks_per_process, result).find("process 1 (pid ") != std::string::npos;
  };
  EXPECT_TRUE(is_told_by(0) || is_told_by(2)) << result.err;
}

TEST_F(MpiProcesses, AreRefusedWithoutMpirun) {
  const ProcessResult result =
      run_process({STRATA_MPI_ROUNDS, "well", "0", "1"},
                  {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("MPI knows 1 processes and torchrun tells of 2"));
  EXPECT_THAT(result.err, HasSubstr("start with mpirun"));
}

}  // namespace
}  // namespace strata
