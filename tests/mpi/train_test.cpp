// `strata train` over several processes: the same bits as over threads, and one end for all.

#include <signal.h>
#include <sys/types.h>

#include <fstream>
#include <sstream>

#include "fault/cli/cli_fixture.hpp"
#include "mpi/left_alone.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class ProcessesOfARun : public CliOnDrive {
 protected:
  std::vector<std::string> launched(int processes, std::vector<std::string> arguments) const {
    std::vector<std::string> whole{STRATA_MPI_LAUNCHER, std::to_string(processes)};
    for (std::string& argument : command(std::move(arguments)))
      whole.push_back(std::move(argument));
    return whole;
  }
  std::vector<std::string> into(const std::string& folder,
                                std::vector<std::string> overrides) const {
    overrides.push_back("output_dir=" + path(folder).string());
    return train(overrides);
  }
  // Processes of this test's folder by their command line.
  std::vector<pid_t> trainers() const {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream file(entry.path() / "cmdline");
      std::ostringstream line;
      line << file.rdbuf();
      if (line.str().starts_with(STRATA_BINARY) &&
          line.str().find(path("run.yaml").string()) != std::string::npos)
        found.push_back(static_cast<pid_t>(std::stol(name)));
    }
    return found;
  }
};

TEST_F(ProcessesOfARun, TrainToTheBitsOfThreads) {
  ASSERT_EQ(run(into("threads", {"ranks=2"})).exit_code, 0);
  const ProcessResult two = Process(path(""), launched(2, into("processes", {}))).wait();
  ASSERT_EQ(two.exit_code, 0) << two.err;
  EXPECT_EQ(text("processes/export/model.safetensors"), text("threads/export/model.safetensors"));
  ASSERT_EQ(run(into("fourThreads", {"ranks=4"})).exit_code, 0);
  const ProcessResult four =
      Process(path(""), launched(2, into("twiceTwo", {"ranks=2", "offload.gradients={nvme: 1}"})))
          .wait();
  ASSERT_EQ(four.exit_code, 0) << four.err;
  EXPECT_EQ(text("twiceTwo/export/model.safetensors"),
            text("fourThreads/export/model.safetensors"));
}

TEST_F(ProcessesOfARun, EndWithTheReasonWhenOneIsKilled) {
  Process job(path(""), launched(2, into("out", {"max_steps=1000000", "save_strategy=no"})),
              {.limits = {}, .environment = left_alone});
  ASSERT_TRUE(job.wait_for_output("step 2/")) << job.err();
  const std::vector<pid_t> ranks = trainers();
  ASSERT_EQ(ranks.size(), 2u);
  ::kill(ranks.back(), SIGKILL);
  EXPECT_THAT(job.wait().err, HasSubstr("is gone"));
  EXPECT_TRUE(trainers().empty());
}

TEST_F(ProcessesOfARun, GoOnFromACheckpointOfThreads) {
  ASSERT_EQ(run(into("whole", {"ranks=2", "max_steps=4", "save_steps=2"})).exit_code, 0);
  const ProcessResult resumed =
      Process(path(""), launched(2, into("resumed", {"max_steps=4", "zero_optimization.stage=1",
                                                     "resume_from_checkpoint=" +
                                                         path("whole/checkpoint-2").string()})))
          .wait();
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(text("resumed/export/model.safetensors"), text("whole/export/model.safetensors"));
}

TEST_F(ProcessesOfARun, RefuseToBeOneJobWithDifferentConfigs) {
  std::vector<std::string> both = launched(1, into("out", {}));
  // MPMD: a second program of another learning rate.
  both.insert(both.end(), {":", "-n", "1"});
  for (std::string& argument : command(into("out", {"learning_rate=5"}))) both.push_back(argument);
  const ProcessResult result = Process(path(""), both).wait();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("learning_rate"));
}

}  // namespace
}  // namespace strata
