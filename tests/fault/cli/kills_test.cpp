// Runs that are killed at random moments, and amid saves, removals and exports, again and again,
// until they are done: each start goes on from the last checkpoint, and what comes out is what one
// run alone gives, to the bit. Where the kills fell is counted.
// STRATA_KILLS=500 makes as many kills in all as the release of a version asks for.

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <thread>

#include "fault/cli/cli_fixture.hpp"
#include "support/sanitizers.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Placement {
  std::string name;
  std::vector<std::string> overrides;
};

// Where a kill fell, by what it left.
enum class Fell : std::uint8_t { start, step, save, removal, exporting, end };
constexpr std::array<const char*, 6> fell_names{"start",   "step",   "save",
                                                "removal", "export", "end"};

// What a kill waits for.
enum class Aim : std::uint8_t { anywhere, save, removal, exporting };
constexpr std::array<const char*, 4> signs{"", ".partial", ".removing", "export.tmp-"};

class Kills : public CliOnDrive, public ::testing::WithParamInterface<Placement> {
 protected:
  using Names = std::vector<std::string>;

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
  static int kills_wanted() {
    const char* wanted = std::getenv("STRATA_KILLS");
    if (wanted != nullptr) return std::max(1, std::atoi(wanted) / 4);
    return testing::rounds(8, 2);
  }
  // How long a run takes here is found out: a kill should fall anywhere in it.
  std::int64_t measured_ms() {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run(training("timed")).exit_code, 0);
    fs::remove_all(path("timed"));
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begin)
        .count();
  }

  static bool holds(const Names& names, const std::string& sign) {
    return std::ranges::any_of(
        names, [&](const std::string& name) { return name.find(sign) != std::string::npos; });
  }
  // As seen while a run renames and removes there.
  Names seen_in(const std::string& folder) const {
    Names names;
    std::error_code gone;
    for (fs::directory_iterator entry(path(folder), gone), end; !gone && entry != end;
         entry.increment(gone))
      names.push_back(entry->path().filename());
    return names;
  }
  void wait(Process& process, std::chrono::microseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (process.is_running() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::min(time, std::chrono::microseconds(500)));
  }
  // Until the folder shows what is aimed at, and a moment more.
  void wait_for(Process& process, Aim aim, const std::string& folder) {
    while (process.is_running() && !holds(seen_in(folder), signs.at(static_cast<std::size_t>(aim))))
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    wait(process, std::chrono::microseconds(random_() % (aim == Aim::save ? 4000 : 200)));
  }
  Fell where_it_fell(const Names& names, const std::string& said) const {
    if (holds(names, ".removing")) return Fell::removal;
    if (holds(names, ".partial") || holds(names, ".replaced")) return Fell::save;
    if (holds(names, "export.tmp-")) return Fell::exporting;
    if (std::ranges::find(names, "export") != names.end()) return Fell::end;
    return said.find("\nstep ") == std::string::npos ? Fell::start : Fell::step;
  }
  // Kills a run at some moment, or lets it end before. Returns whether it ended.
  bool run_until(Aim aim, std::int64_t whole_ms, const std::string& folder) {
    Process process(path(""), command(training(folder)));
    wait(process, std::chrono::microseconds(
                      random_() %
                      static_cast<std::uint64_t>(aim == Aim::exporting ? 1000 : 1000 * whole_ms)));
    if (aim != Aim::anywhere) wait_for(process, aim, folder);
    if (process.is_running()) process.kill(SIGKILL);
    const ProcessResult result = process.wait();
    if (result.signal != SIGKILL) {
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return true;
    }
    ++fell_.at(static_cast<std::size_t>(where_it_fell(seen_in(folder), result.out)));
    return false;
  }
  // Most fall anywhere, which is seldom the moment that a removal or an export takes.
  Aim next_aim() const {
    constexpr std::array directed{Aim::save, Aim::removal, Aim::exporting};
    const auto turn = static_cast<std::size_t>(num_killed()) % 8;
    return turn < directed.size() ? directed.at(turn) : Aim::anywhere;
  }
  int num_killed() const { return std::accumulate(fell_.begin(), fell_.end(), 0); }
  // Runs on and on until it is done. A run killed after its export was in place has nothing left to
  // do, and says so.
  void finish_under_kills(const std::string& folder, std::int64_t whole_ms) {
    while (num_killed() < kills_wanted()) {
      if (run_until(next_aim(), whole_ms, folder) || fs::exists(path(folder + "/export"))) return;
      if (HasFailure()) return;
    }
    const ProcessResult last = run(training(folder));
    EXPECT_EQ(last.exit_code, 0) << last.err;
  }
  void tell_where_they_fell() const {
    std::string text;
    for (std::size_t i = 0; i < fell_.size(); ++i)
      text += std::string(text.empty() ? "" : ", ") + fell_names.at(i) + " " +
              std::to_string(fell_.at(i));
    std::printf("  %d kills, seed %llu: %s\n", num_killed(), static_cast<unsigned long long>(seed),
                text.c_str());
    RecordProperty("kills", text);
  }
  int fell(Fell where) const { return fell_.at(static_cast<std::size_t>(where)); }

  static constexpr std::uint64_t seed = 20261130;
  std::mt19937_64 random_{seed};
  std::array<int, fell_names.size()> fell_{};
};

INSTANTIATE_TEST_SUITE_P(
    By, Kills,
    ::testing::Values(
        Placement{"nvme", {}},
        Placement{"mixed",
                  {"offload.optimizer={gpu: 0.3, cpu: 0.4, nvme: 0.3}", "optimizer_master=split"}},
        Placement{"threeRanks", {"ranks=3", "offload.weights={gpu: 0.5, nvme: 0.5}"}},
        Placement{"best",
                  {"eval_strategy=steps", "eval_steps=3", "load_best_model_at_end=true",
                   "save_total_limit=1", "learning_rate=0.2",
                   "lr_scheduler_type=constant_with_warmup", "warmup_steps=20"}}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_P(Kills, AtAnyMomentCostNothingButTime) {
  ASSERT_EQ(run(training("whole")).exit_code, 0);
  const auto whole = logged_steps(text("whole/metrics.jsonl"));
  ASSERT_EQ(whole.size(), 24u);
  const std::int64_t whole_ms = measured_ms();
  for (int round = 0; num_killed() < kills_wanted() && !HasFailure(); ++round) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ", round " << round);
    const std::string folder = "killed" + std::to_string(round);
    finish_under_kills(folder, whole_ms);
    EXPECT_EQ(logged_steps(text(folder + "/metrics.jsonl")), whole);
    EXPECT_EQ(text(folder + "/export/model.safetensors"), text("whole/export/model.safetensors"));
    // What the killed ones left is gone.
    for (const char* sign : {".partial", ".removing", ".replaced", ".tmp-"})
      EXPECT_FALSE(holds(seen_in(folder), sign)) << sign;
    fs::remove_all(path(folder));
  }
  tell_where_they_fell();
  if (kills_wanted() < 40) return;
  for (const Fell where : {Fell::step, Fell::save, Fell::removal, Fell::exporting})
    EXPECT_GT(fell(where), 0) << fell_names.at(static_cast<std::size_t>(where));
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

TEST_F(CheckpointCommands, RefuseOtherFormatsNamingTheVersion) {
  ASSERT_EQ(run(train({"max_steps=2", "save_steps=2"})).exit_code, 0);
  const std::string manifest = text("out/checkpoint-2/checkpoint.json");
  const std::string own = "\"format_version\": 1";
  ASSERT_NE(manifest.find(own), std::string::npos);
  for (const std::string version : {"0", "2"}) {
    std::string other = manifest;
    other.replace(other.find(own), own.size(), "\"format_version\": " + version);
    write("out/checkpoint-2/checkpoint.json", other);
    const auto says_so =
        AllOf(HasSubstr("checkpoint-2/checkpoint.json"),
              HasSubstr("has format version " + version + "; this program reads format version 1"),
              HasSubstr("use the version of Strata that wrote it"));
    const ProcessResult verified = run({"checkpoint", "verify", path("out/checkpoint-2")});
    EXPECT_EQ(verified.exit_code, 1);
    EXPECT_THAT(verified.err, says_so);
    const ProcessResult resumed = run(train(
        {"max_steps=4", "resume_from_checkpoint=true", "export_dir=" + path("other").string()}));
    EXPECT_EQ(resumed.exit_code, 1);
    EXPECT_THAT(resumed.err, says_so);
    EXPECT_EQ(text("out/checkpoint-2/checkpoint.json"), other) << "it is left as it is";
  }
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
              AllOf(HasSubstr("no checkpoint at step 1"), HasSubstr("stopped after 1")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("no checkpoint at step 1"), HasSubstr("on_save_failure"),
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

// Step and save take longer than nothing at all. What a save takes is known from those that nothing
// else runs beside, as at the end.
TEST_F(CheckpointCommands, AreWrittenWithAWarningWhenTheGracePeriodIsTooShort) {
  Process process(path(""), command(train({"max_steps=1000000", "save_steps=4",
                                           "save_in_background=false", "grace_period=0.000001"})));
  ASSERT_TRUE(process.wait_for_output("saved ")) << process.err();
  EXPECT_TRUE(process.wait_for_output("ending this run is measured to take "));
  process.kill(SIGTERM);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("more than grace_period: 1e-06"),
                                HasSubstr("after the signal, with grace_period: 1e-06")));
}

// A checkpoint that was gone on from gives its place on the disk back when it is rotated away.
TEST_F(CheckpointCommands, AreNotHeldOpenByTheRunThatWentOnFromThem) {
  ASSERT_EQ(run(train({"max_steps=2", "save_steps=2"})).exit_code, 0);
  Process process(path(""), command(train({"max_steps=1000000", "save_steps=2",
                                           "save_total_limit=1", "resume_from_checkpoint=true",
                                           "export_dir=" + path("other").string()})));
  ASSERT_TRUE(process.wait_for_output("saved ")) << process.err();
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(process.id()) + "/fd")) {
    std::error_code gone;
    EXPECT_THAT(fs::read_symlink(entry, gone).string(),
                Not(AnyOf(HasSubstr("/checkpoint-2/"), HasSubstr("/checkpoint-2."))));
  }
  process.kill(SIGTERM);
  EXPECT_EQ(process.wait().exit_code, 128 + SIGTERM);
}

TEST_F(CheckpointCommands, AreRefusedBeforeTheRunWhereTheyWillNotFitWithTheExport) {
  if (!can_mount()) GTEST_SKIP() << "no mount namespaces here";
  fs::create_directories(path("out"));
  std::vector<std::string> arguments =
      command(train({"save_steps=2", "offload.optimizer={cpu: 1}"}));
  arguments.insert(arguments.begin(), path("out"));
  const ProcessResult result =
      run_with_mounts("mount -t tmpfs -o size=1m none \"$1\"\nshift\nexec \"$@\"", arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("too little room on the file system of"), HasSubstr("there in all"),
                    HasSubstr("for a checkpoint in"), HasSubstr("for the export in")));
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
