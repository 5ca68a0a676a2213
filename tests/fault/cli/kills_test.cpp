// Runs that are killed at random moments, again and again, until they are done: each start goes on
// from the last checkpoint, and what comes out is what one run alone gives, to the bit.
// STRATA_KILLS=500 makes as many kills in all as the release of a version asks for.

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "fault/cli/cli_fixture.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Losses and norms by step: bytes of their numbers as they were logged.
std::map<std::int64_t, std::string> logged(const std::string& metrics) {
  std::map<std::int64_t, std::string> steps;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object() || !object.contains("loss")) continue;
    steps[object["step"]] = object["loss"].dump() + " " + object["grad_norm"].dump() + " " +
                            object["learning_rate"].dump();
  }
  return steps;
}

struct Placement {
  std::string name;
  std::vector<std::string> overrides;
};

class Kills : public CliOnDrive, public ::testing::WithParamInterface<Placement> {
 protected:
  std::vector<std::string> training(const std::string& folder) const {
    std::vector<std::string> overrides{"output_dir=" + path(folder).string(),
                                       "max_steps=24",
                                       "save_steps=3",
                                       "save_total_limit=2",
                                       "resume_from_checkpoint=true",
                                       "eval_strategy=no"};
    const auto& own = GetParam().overrides;
    overrides.insert(overrides.end(), own.begin(), own.end());
    return train(overrides);
  }
  // Kills a run after so long, or lets it end before. Returns whether it ended.
  bool run_for(std::chrono::milliseconds time, const std::string& folder) {
    Process process(path(""), command(training(folder)));
    const auto end = std::chrono::steady_clock::now() + time;
    while (process.is_running() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const bool killed = process.is_running();
    if (killed) process.kill(SIGKILL);
    const ProcessResult result = process.wait();
    if (result.signal == SIGKILL) return false;
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return true;
  }
  static int kills_wanted() {
    const char* wanted = std::getenv("STRATA_KILLS");
    if (wanted != nullptr) return std::max(1, std::atoi(wanted) / 3);
    return testing::rounds(6, 2);
  }
};

INSTANTIATE_TEST_SUITE_P(
    By, Kills,
    ::testing::Values(
        Placement{"nvme", {}},
        Placement{"mixed",
                  {"offload.optimizer={gpu: 0.3, cpu: 0.4, nvme: 0.3}", "optimizer_master=split"}},
        Placement{"threeRanks", {"ranks=3", "offload.weights={gpu: 0.5, nvme: 0.5}"}}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_P(Kills, AtAnyMomentCostNothingButTime) {
  ASSERT_EQ(run(training("whole")).exit_code, 0);
  const auto whole = logged(text("whole/metrics.jsonl"));
  ASSERT_EQ(whole.size(), 24u);

  const std::uint64_t seed = 20261130;
  std::mt19937_64 random(seed);
  // How long a run takes here is found out: a kill should fall anywhere in it.
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(training("timed")).exit_code, 0);
  const auto whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::steady_clock::now() - begin)
                            .count();
  int killed = 0;
  for (int round = 0; killed < kills_wanted(); ++round) {
    const std::string folder = "killed" + std::to_string(round);
    for (bool ended = false; !ended;) {
      const auto after = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(whole_ms));
      const bool may_kill = killed < kills_wanted();
      ended = run_for(std::chrono::milliseconds(may_kill ? after : 600'000), folder);
      killed += ended ? 0 : 1;
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", kill " << killed);
      ASSERT_LE(killed, kills_wanted());
      // A run killed after its export was in place has nothing left to do, and says so.
      if (!ended && fs::exists(path(folder + "/export"))) ended = true;
    }
    EXPECT_EQ(logged(text(folder + "/metrics.jsonl")), whole) << "seed " << seed << round;
    EXPECT_EQ(text(folder + "/export/model.safetensors"), text("whole/export/model.safetensors"))
        << "seed " << seed << ", round " << round;
    fs::remove_all(path(folder));
  }
}

class CheckpointCommands : public CliOnDrive {};

TEST_F(CheckpointCommands, ListVerifyExportAndCompareWhatARunSaved) {
  ASSERT_EQ(run(train({"max_steps=4", "save_steps=2"})).exit_code, 0);
  const ProcessResult listed = run({"checkpoint", "list", path("out")});
  EXPECT_THAT(listed.out,
              AllOf(HasSubstr("checkpoint-2"), HasSubstr("checkpoint-4"), HasSubstr("step 4")));
  EXPECT_EQ(run({"checkpoint", "verify", path("out/checkpoint-4")}).exit_code, 0);

  ASSERT_EQ(
      run({"checkpoint", "export", path("out/checkpoint-4"), path("exported"), "--dtype", "bf16"})
          .exit_code,
      0);
  EXPECT_EQ(text("exported/model.safetensors"), text("out/export/model.safetensors"));

  EXPECT_EQ(
      run({"checkpoint", "diff", path("out/checkpoint-4"), path("out/checkpoint-4")}).exit_code, 0);
  const ProcessResult differing =
      run({"checkpoint", "diff", path("out/checkpoint-2"), path("out/checkpoint-4")});
  EXPECT_EQ(differing.exit_code, 1);
  EXPECT_THAT(differing.out, AllOf(HasSubstr("step: 2 | 4"), HasSubstr("master/")));
}

TEST_F(CheckpointCommands, NameWhatIsDamaged) {
  ASSERT_EQ(run(train({"max_steps=2", "save_steps=2"})).exit_code, 0);
  for (const auto& entry : fs::recursive_directory_iterator(path("out/checkpoint-2")))
    if (entry.is_regular_file() && entry.file_size() > 4096) {
      damage(fs::relative(entry.path(), path("")).string());
      break;
    }
  const ProcessResult result = run({"checkpoint", "verify", path("out/checkpoint-2")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("FAILED"));
  const ProcessResult resumed = run(train(
      {"max_steps=4", "resume_from_checkpoint=true", "export_dir=" + path("other").string()}));
  EXPECT_EQ(resumed.exit_code, 1);
  EXPECT_THAT(resumed.err, HasSubstr("checkpoint-2"));
}

TEST_F(CheckpointCommands, AreNotSilentlyPassedOverByANewRun) {
  ASSERT_EQ(run(train({"max_steps=2", "save_steps=2"})).exit_code, 0);
  const ProcessResult again = run(train({"export_dir=" + path("other").string()}));
  EXPECT_NE(again.exit_code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("checkpoint-2"), HasSubstr("resume_from_checkpoint")));
}

TEST_F(CheckpointCommands, LetOneRunOwnAnOutputFolder) {
  Process first(path(""), command(train({"max_steps=1000000", "save_strategy=no"})));
  ASSERT_TRUE(first.wait_for_output("step 1/")) << first.err();
  const ProcessResult second = run(train());
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("in use by another run"));
  first.kill(SIGKILL);
  first.wait();
  EXPECT_EQ(run(train()).exit_code, 0);
}

TEST_F(CheckpointCommands, OfARunThatEndsForWantOfThemAreMissedInSoManyWords) {
  const auto size = fs::file_size(path("model/model.safetensors"));
  const ProcessResult result =
      run(train({"offload.optimizer={cpu: 1}", "save_steps=1", "on_save_failure=stop"}),
          {.limits = {{RLIMIT_FSIZE, size / 16}}, .environment = {}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("no checkpoint of step 1"), HasSubstr("stopped after 1")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("no checkpoint of step 1"), HasSubstr("on_save_failure"),
                                HasSubstr("its weights were not exported")));
}

TEST_F(CheckpointCommands, GoBesideTrainingAndTellWhatTheyCostIt) {
  const ProcessResult result =
      run(train({"max_steps=5", "save_steps=3", "save_in_background=true"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("while training goes on"), HasSubstr("checkpoint-3 at step 3: "),
                    HasSubstr("verified; step 4 took ")));
  const ProcessResult still = run(train({"max_steps=5", "save_steps=3", "save_in_background=false",
                                         "output_dir=" + path("still").string()}));
  ASSERT_EQ(still.exit_code, 0) << still.err;
  EXPECT_EQ(still.out.find("while training goes on"), std::string::npos);
  EXPECT_EQ(still.out.find("took"), std::string::npos);
  EXPECT_EQ(
      run({"checkpoint", "diff", path("out/checkpoint-3"), path("still/checkpoint-3")}).exit_code,
      0);
  EXPECT_EQ(text("out/export/model.safetensors"), text("still/export/model.safetensors"));
}

TEST_F(CheckpointCommands, AreWrittenWhenARunIsStopped) {
  Process process(path(""), command(train({"max_steps=1000000"})));
  ASSERT_TRUE(process.wait_for_output("step 2/")) << process.err();
  process.kill(SIGTERM);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("saved "), HasSubstr("resume_from_checkpoint=true"),
                                Not(HasSubstr("exported"))));
}

TEST_F(CheckpointCommands, AreWrittenOnRequestWhileTheRunGoesOn) {
  Process process(path(""), command(train({"max_steps=1000000"})));
  ASSERT_TRUE(process.wait_for_output("step 2/")) << process.err();
  process.kill(SIGUSR1);
  EXPECT_TRUE(process.wait_for_output("saved "));
  EXPECT_TRUE(process.is_running());
  process.kill(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGTERM);
}

TEST_F(CheckpointCommands, AreWrittenWhenTheTimeIsUp) {
  const ProcessResult result = run(train({"max_steps=1000000", "max_hours=0.0003"}));
  EXPECT_EQ(result.exit_code, 75) << result.err;
  EXPECT_THAT(result.out, HasSubstr("saved "));
}

}  // namespace
}  // namespace strata
