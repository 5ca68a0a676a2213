// Runs whose every step is durable (offload.versioned), killed at random moments until they are
// done, and what the commands say of them.
// STRATA_KILLS=500 makes as many kills in all as the release of a version asks for.

#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "fault/cli/cli_fixture.hpp"
#include "support/loop_drive.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class DurableRun : public CliOnDrive {
 protected:
  std::vector<std::string> training(const std::string& folder, int ranks,
                                    const std::vector<std::string>& more = {}) const {
    std::vector<std::string> overrides{
        "output_dir=" + path(folder).string(), "max_steps=24",     "save_strategy=\"no\"",
        "resume_from_checkpoint=true",         "eval_strategy=no", "offload.versioned=true",
        "ranks=" + std::to_string(ranks)};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return train(overrides);
  }
  // Kills a run after so long, or lets it end before. Returns whether it ended.
  bool run_for(std::chrono::milliseconds time, const std::vector<std::string>& arguments) {
    Process process(path(""), command(arguments));
    const auto end = std::chrono::steady_clock::now() + time;
    while (process.is_running() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (process.is_running()) process.kill(SIGKILL);
    const ProcessResult result = process.wait();
    if (result.signal == SIGKILL) return false;
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return true;
  }
  // A run killed in its midst: some step is committed.
  void leave_killed(const std::string& folder, int ranks = 1) {
    Process process(path(""), command(training(folder, ranks, {"max_steps=1000000"})));
    ASSERT_TRUE(process.wait_for_output("step 3/")) << process.err();
    process.kill(SIGKILL);
    process.wait();
  }
  static int kills_wanted() {
    const char* wanted = std::getenv("STRATA_KILLS");
    if (wanted != nullptr) return std::max(1, std::atoi(wanted) / 2);
    return testing::rounds(6, 2);
  }
  std::string store_of(const std::string& rank = "rank0") const {
    for (const std::string& name : names_in("nvme"))
      if (name.starts_with("strata-state-") && name.ends_with(rank)) return "nvme/" + name;
    return "";
  }
};

class DurableRuns : public DurableRun, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(OverRanks, DurableRuns, ::testing::Values(1, 3));

TEST_P(DurableRuns, LoseNoStepWhenTheyAreKilledAtAnyMoment) {
  const int ranks = GetParam();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run(training("whole", ranks)).exit_code, 0);
  // How long a run takes here is found out: a kill should fall anywhere in it.
  const auto whole_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::steady_clock::now() - begin)
                            .count();
  const LoggedSteps whole = logged_steps(text("whole/metrics.jsonl"));
  ASSERT_EQ(whole.size(), 24u);

  const std::uint64_t seed = 20261130;
  std::mt19937_64 random(seed);
  int killed = 0;
  for (int round = 0; killed < kills_wanted(); ++round) {
    const std::string folder = "killed" + std::to_string(round);
    for (bool ended = false; !ended;) {
      const auto after = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(whole_ms));
      const bool may_kill = killed < kills_wanted();
      ended =
          run_for(std::chrono::milliseconds(may_kill ? after : 600'000), training(folder, ranks));
      killed += ended ? 0 : 1;
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", kill " << killed);
      ASSERT_LE(killed, kills_wanted());
      // A run killed after its export was in place has nothing left to do, and says so.
      if (!ended && fs::exists(path(folder + "/export"))) ended = true;
    }
    // Of a step that was committed just before a kill there may be no line.
    const LoggedSteps logged = logged_steps(text(folder + "/metrics.jsonl"));
    EXPECT_GE(static_cast<int>(logged.size()) + killed, 24);
    for (const auto& [step, numbers] : logged)
      EXPECT_EQ(numbers, whole.at(step)) << "seed " << seed << ", round " << round;
    EXPECT_EQ(text(folder + "/export/model.safetensors"), text("whole/export/model.safetensors"))
        << "seed " << seed << ", round " << round;
    fs::remove_all(path(folder));
  }
}

TEST_P(DurableRuns, LeaveNothingBehindWhenTheyAreDone) {
  ASSERT_EQ(run(training("out", GetParam())).exit_code, 0);
  EXPECT_TRUE(names_in("nvme").empty());
  EXPECT_THAT(names_in("out"), Not(Contains(StartsWith("versioned_state"))));
}

TEST_P(DurableRuns, StopWithoutACheckpointAndSayWhereTheyStand) {
  const int ranks = GetParam();
  Process process(path(""), command(training("out", ranks, {"max_steps=1000000"})));
  ASSERT_TRUE(process.wait_for_output("step 2/")) << process.err();
  process.kill(SIGTERM);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("is durable"), HasSubstr("resume_from_checkpoint=true"),
                                Not(HasSubstr("exported")), Not(HasSubstr("saved "))));
  const ProcessResult again = run(training("out", ranks));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("resume   "), HasSubstr("strata-state-")));
}

TEST_F(DurableRun, AreListedVerifiedExportedAndCompared) {
  leave_killed("out", 3);
  EXPECT_THAT(run({"checkpoint", "list", path("out")}).out,
              AllOf(HasSubstr("every step durable"), HasSubstr("rank0 to rank2")));
  const ProcessResult verified = run({"checkpoint", "verify", path("out")});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  ASSERT_EQ(run({"checkpoint", "export", path("out"), path("exported")}).exit_code, 0);
  EXPECT_TRUE(fs::exists(path("exported/model.safetensors")));
  EXPECT_EQ(run({"checkpoint", "diff", path("out"), path("out")}).exit_code, 0);
  EXPECT_THAT(run({"inspect", path(store_of())}).out,
              AllOf(HasSubstr("versioned"), HasSubstr("before it"), HasSubstr("out")));

  damage(store_of("rank1") + "/tiles");
  const ProcessResult damaged = run({"checkpoint", "verify", path("out")});
  const ProcessResult resumed = run(training("out", 3));
  if (damaged.exit_code == 0) return;  // It hit the place that is not the committed one.
  EXPECT_THAT(damaged.out, AllOf(HasSubstr("FAILED"), HasSubstr("is damaged")));
  EXPECT_THAT(resumed.err, HasSubstr("is damaged"));
}

TEST_F(DurableRun, AreNotPassedOverByANewRun) {
  leave_killed("out");
  const ProcessResult refused = run(training("out", 1, {"resume_from_checkpoint=false"}));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("strata-state-"), HasSubstr("resume_from_checkpoint")));
  // Another output folder is another run, on the same drives.
  EXPECT_EQ(run(training("other", 1)).exit_code, 0);
  EXPECT_NE(store_of(), "");
  EXPECT_EQ(run(training("out", 1)).exit_code, 0);
}

TEST_F(DurableRun, GoOnInAFolderThatWasRenamedAndNotInACopy) {
  leave_killed("out");
  fs::create_directories(path("copy"));
  fs::copy(path("out/versioned_state.json"), path("copy/versioned_state.json"));
  EXPECT_THAT(run(training("copy", 1)).err, AllOf(HasSubstr(path("copy").string() + " is a copy"),
                                                  HasSubstr(path("out").string())));
  fs::remove_all(path("copy"));
  fs::rename(path("out"), path("renamed"));
  const ProcessResult result = run(training("renamed", 1));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("this output_dir was " + path("out").string() + " then"));
  EXPECT_TRUE(names_in("nvme").empty());
}

TEST_F(DurableRun, OnADriveThatIsNearlyFullGoOnInPlaceOrSayWhatIsMissing) {
  const LoopDrive drive(path("loop"), 48 << 20, 64 << 20);
  if (!drive.why_not().empty()) GTEST_SKIP() << drive.why_not();
  const std::string paths = "offload.nvme_paths=" + drive.path().string();
  {
    Process process(path(""), command(training("out", 1, {paths, "max_steps=1000000"})));
    ASSERT_TRUE(process.wait_for_output("step 3/")) << process.err();
    process.kill(SIGKILL);
    process.wait();
  }
  const auto free = fs::space(drive.path()).available;
  std::ofstream(drive.file("filler"))
      << std::string(free - std::min<std::size_t>(free, 256 << 10), 'x');
  const std::string listed = run({"checkpoint", "list", path("out")}).out;
  const ProcessResult refused = run(training("out", 1, {paths, "offload.tile_bytes=32KiB"}));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("too little"), HasSubstr(drive.path().string()),
                                 HasSubstr("offload.tile_bytes"), HasSubstr("in place")));
  EXPECT_EQ(run({"checkpoint", "list", path("out")}).out, listed);
  EXPECT_EQ(run({"checkpoint", "verify", path("out")}).exit_code, 0);
  const ProcessResult resumed = run(training("out", 1, {paths}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("resume   "));
}

TEST_F(DurableRun, AreOneOwnersAtATime) {
  Process first(path(""), command(training("out", 1, {"max_steps=1000000"})));
  ASSERT_TRUE(first.wait_for_output("step 2/")) << first.err();
  const ProcessResult read = run({"checkpoint", "verify", path("out")});
  EXPECT_THAT(read.err, HasSubstr("in use by process"));
  first.kill(SIGKILL);
  first.wait();
}

TEST_F(DurableRun, AreRefusedWhereAPartOfTheStateIsElsewhere) {
  const ProcessResult result = run(training("out", 1, {"offload.moment1={cpu: 1}"}));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("offload.versioned"), HasSubstr("offload.moment1")));
  EXPECT_THAT(run(training("out", 1, {"optimizer_master=split"})).err,
              HasSubstr("optimizer_master: fp32"));
}

}  // namespace
}  // namespace strata
