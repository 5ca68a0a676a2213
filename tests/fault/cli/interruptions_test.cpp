// Runs that are stopped, killed, starved of disk or memory, or not alone.

#include <signal.h>
#include <sys/resource.h>

#include "fault/cli/cli_fixture.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class CliFault : public CliOnDrive {
 protected:
  std::vector<std::string> endless() const { return command(train({"max_steps=1000000"})); }
};

class CliStop : public CliFault, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(BySignal, CliStop, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& parameter) {
                           return parameter.param == SIGINT ? "SIGINT" : "SIGTERM";
                         });

TEST_P(CliStop, EndsAfterTheStepAndExportsWhereItSavesNothing) {
  Process process(path(""), command(train({"max_steps=1000000", "save_strategy=no"})));
  ASSERT_TRUE(process.wait_for_output("step 2/")) << process.err();
  process.kill(GetParam());
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + GetParam()) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("stopped after"), HasSubstr("exported")));
  EXPECT_EQ(run({"inspect", path("out/export")}).exit_code, 0);
  EXPECT_THAT(names_in("nvme"), IsEmpty());
}

TEST_P(CliStop, DiesOfTheSecondSignal) {
  Process process(path(""), endless());
  ASSERT_TRUE(process.wait_for_output("step 2/")) << process.err();
  process.kill(GetParam());
  process.kill(GetParam());
  const ProcessResult result = process.wait();
  EXPECT_TRUE(result.signal == GetParam() || result.exit_code == 128 + GetParam());
}

TEST_F(CliFault, ReclaimsWhatAKilledRunLeftOfAnExportElsewhere) {
  for (const char* name : {"model.tmp-4711", "other.tmp-4711"}) {
    fs::create_directories(path("shared") / name);
    write(std::string("shared/") + name + "/.strata-unfinished", "");
    write(std::string("shared/") + name + "/model.safetensors", "half");
  }
  const std::string export_dir = "export_dir=" + path("shared/model").string();
  const ProcessResult result = run(train({"max_steps=1", export_dir}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("cleared  " + path("shared/model.tmp-4711").string()));
  EXPECT_THAT(names_in("shared"), ElementsAre("model", "other.tmp-4711"));
  EXPECT_FALSE(fs::exists(path("shared/model/.strata-unfinished")));
}

TEST_F(CliFault, ReclaimsWhatAKilledRunLeft) {
  {
    Process process(path(""), endless());
    ASSERT_TRUE(process.wait_for_output("step 2/")) << process.err();
    process.kill(SIGKILL);
    EXPECT_EQ(process.wait().signal, SIGKILL);
  }
  EXPECT_THAT(names_in("nvme"), SizeIs(1));
  const ProcessResult next = run(train());
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_THAT(next.out, HasSubstr("removed 1 scratch files of dead runs"));
  EXPECT_THAT(names_in("nvme"), IsEmpty());
}

TEST_F(CliFault, RefusesADriveThatAnotherRunHas) {
  Process first(path(""), endless());
  ASSERT_TRUE(first.wait_for_output("step 1/")) << first.err();
  const auto names_the_first =
      AllOf(HasSubstr(path("nvme").string() + " is in use by another run (process " +
                      std::to_string(first.id()) + " on host "),
            HasSubstr(" since 2"), HasSubstr("offload.nvme_paths"));
  const ProcessResult second = run(train({"output_dir=" + path("second").string()}));
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err, names_the_first);
  const ProcessResult evaluation = run({"eval", path("run.yaml"), "offload.weights={nvme: 1}"});
  EXPECT_EQ(evaluation.exit_code, 2);
  EXPECT_THAT(evaluation.err, names_the_first);
  // What needs no drive is let in.
  EXPECT_EQ(run({"eval", path("run.yaml"), "offload.weights={cpu: 1}"}).exit_code, 0);
  EXPECT_THAT(names_in("nvme"), SizeIs(1));
  first.kill(SIGTERM);
  EXPECT_EQ(first.wait().exit_code, 128 + SIGTERM);
  EXPECT_TRUE(fs::is_empty(path("nvme")));
}

TEST_F(CliFault, MeasuresNoDriveThatARunHas) {
  Process first(path(""), endless());
  ASSERT_TRUE(first.wait_for_output("step 1/")) << first.err();
  const ProcessResult bench = run({"bench", "nvme", "--path", path("nvme"), "--size", "1MiB",
                                   "--buffer", "8MiB", "--block", "64KiB", "--depth", "2"});
  EXPECT_EQ(bench.exit_code, 2);
  EXPECT_THAT(bench.err, AllOf(HasSubstr("process " + std::to_string(first.id())),
                               HasSubstr("a benchmark now would disturb it")));
  const ProcessResult doctor = run({"doctor", "--path", path("nvme")});
  EXPECT_THAT(doctor.out, HasSubstr("in use by a run (process " + std::to_string(first.id())));
  first.kill(SIGKILL);
  first.wait();
  EXPECT_THAT(run({"doctor", "--path", path("nvme")}).out, Not(HasSubstr("in use by a run")));
}

TEST_F(CliFault, GivesTheSameModelWithoutLockedMemory) {
  ASSERT_EQ(run(train()).exit_code, 0);
  const ProcessResult bare = run(train({"output_dir=" + path("bare").string()}),
                                 {.limits = {{RLIMIT_MEMLOCK, 0}}, .environment = {}});
  EXPECT_EQ(bare.exit_code, 0) << bare.err;
  EXPECT_THAT(bare.out, HasSubstr("io       "));
  EXPECT_EQ(text("bare/export/model.safetensors"), text("out/export/model.safetensors"));
}

TEST_F(CliFault, LeavesNothingOfAnExportThatDoesNotFit) {
  const auto size = fs::file_size(path("model/model.safetensors"));
  const ProcessResult result = run(train({"offload.optimizer={cpu: 1}"}),
                                   {.limits = {{RLIMIT_FSIZE, size / 2}}, .environment = {}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("cannot write"), HasSubstr("model.safetensors"), HasSubstr("free")));
  EXPECT_THAT(result.out, HasSubstr("step 3/3"));
  EXPECT_THAT(names_in("out"), ElementsAre("metrics.jsonl", "resolved_config.yaml"));
}

TEST_F(CliFault, RefusesADriveFileThatMayNotGrow) {
  const ProcessResult result =
      run(train(), {.limits = {{RLIMIT_FSIZE, 64 * 1024}}, .environment = {}});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("offload.nvme_paths"));
  EXPECT_THAT(names_in("nvme"), IsEmpty());
}

TEST_F(CliFault, GoesOnWhenTheDiskOfItsMetricsIsFull) {
  if (!can_mount()) GTEST_SKIP() << "no mount namespaces here";
  fs::create_directories(path("out"));
  std::vector<std::string> arguments =
      command(train({"max_steps=60", "export_dir=" + path("model-out").string()}));
  arguments.insert(arguments.begin(), path("out"));
  const ProcessResult result =
      run_with_mounts("mount -t tmpfs -o size=16k none \"$1\"\nshift\nexec \"$@\"", arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("! cannot write"), HasSubstr("No space left on device"),
                                HasSubstr("step 60/60")));
  EXPECT_EQ(run({"inspect", path("model-out")}).exit_code, 0);
}

}  // namespace
}  // namespace strata
