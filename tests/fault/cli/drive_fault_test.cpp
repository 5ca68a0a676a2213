// Drives that fill, fail or disappear under a run, as its user sees it.

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

#include "fault/cli/cli_fixture.hpp"
#include "support/loop_drive.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Matcher;
using ::testing::SizeIs;

constexpr std::uint64_t mib = 1 << 20;

class CliDriveFault : public CliTest {
 protected:
  void SetUp() override {
    make_inputs();
    if (HasFatalFailure()) return;
    if (!has_drive()) GTEST_SKIP() << "temporary files live in memory";
    ASSERT_EQ(run(train({"max_steps=1", "output_dir=" + path("earlier").string()})).exit_code, 0);
    earlier_ = text("earlier/export/model.safetensors");
  }
  void TearDown() override { EXPECT_EQ(text("earlier/export/model.safetensors"), earlier_); }

  // A run under way, with more on the drive than the config has.
  std::unique_ptr<Process> start(std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"max_steps=1000000", "eval_strategy=no", "save_strategy=no",
                                       "offload.gradients=nvme", "offload.activations=nvme"});
    auto process = std::make_unique<Process>(path(""), command(train(overrides)));
    EXPECT_TRUE(process->wait_for_output("step 2/")) << process->err();
    return process;
  }
  // It ended, in order and with one message that says what happened where.
  void expect_ended(Process& process, const Matcher<std::string>& reason) {
    const ProcessResult result = process.wait();
    EXPECT_EQ(result.exit_code, exit_failure) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("strata: step "), HasSubstr(" on lane "),
                                  HasSubstr(" tile "), HasSubstr("tiles"), reason));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), warnings_ + 1) << result.err;
    EXPECT_THAT(names_in("out"), ElementsAre("metrics.jsonl", "resolved_config.yaml"));
  }
  // The only tiles file below the drive.
  fs::path tiles() const {
    for (const auto& entry : fs::recursive_directory_iterator(path("nvme")))
      if (entry.path().filename() == "tiles") return entry.path();
    return {};
  }

  static constexpr std::ptrdiff_t warnings_ = 1;  // of a model without a tokenizer
  std::string earlier_;
};

TEST_F(CliDriveFault, EndsClearlyWhenItsFilesMayNoLongerBeWritten) {
  for (const char* engine : {"auto", "threads"}) {
    auto process = start({std::string("offload.io_engine=") + engine});
    process->limit(RLIMIT_FSIZE, 4096);
    expect_ended(*process, HasSubstr("File too large"));
    EXPECT_THAT(names_in("nvme"), IsEmpty());
    fs::remove_all(path("out"));
  }
}

TEST_F(CliDriveFault, EndsClearlyWhenItsFileIsCutOff) {
  auto process = start({"offload.verify_nvme=true"});
  fs::resize_file(tiles(), 0);
  expect_ended(*process, AnyOf(HasSubstr("the file ends at"), HasSubstr("checksum")));
  EXPECT_THAT(names_in("nvme"), IsEmpty());
}

TEST_F(CliDriveFault, FindsBytesThatChangedOnTheDrive) {
  auto process = start({"offload.verify_nvme=true"});
  const fs::path file = tiles();
  const auto bytes = fs::file_size(file);
  // Each tile is soon written anew, so once may be too early or too late.
  while (process->is_running()) {
    std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
    for (std::uintmax_t at = 0; damage && at < bytes; at += 4096)
      damage.seekp(static_cast<std::streamoff>(at)).put('\x5a');
  }
  expect_ended(*process, HasSubstr("checksum"));
  EXPECT_THAT(names_in("nvme"), IsEmpty());
}

TEST_F(CliDriveFault, NeedsNoNamesOnceItRuns) {
  auto process = start({});
  fs::remove_all(path("nvme"));
  process->kill(SIGTERM);
  const ProcessResult result = process->wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  EXPECT_EQ(run({"inspect", path("out/export")}).exit_code, 0);
}

TEST_F(CliDriveFault, EndsClearlyWhenTheDriveDies) {
  const LoopDrive drive(path("loop"), 64 * mib, 80 * mib);
  if (!drive.why_not().empty()) GTEST_SKIP() << drive.why_not();
  auto process = start({"offload.nvme_paths=" + drive.path().string()});
  drive.die();
  expect_ended(*process, HasSubstr("Input/output error"));
}

TEST_F(CliDriveFault, EndsClearlyWhenTheDriveFillsUnderneath) {
  const LoopDrive drive(path("loop"), 128 * mib, 96 * mib);
  if (!drive.why_not().empty()) GTEST_SKIP() << drive.why_not();
  auto process = start({"offload.nvme_paths=" + drive.path().string()});
  drive.fill_below();
  expect_ended(*process, AnyOf(HasSubstr("Input/output error"), HasSubstr("No space left"),
                               HasSubstr("Read-only file system")));
}

// A process cannot leave while the kernel is in the middle of its writes: it does once they end.
TEST_F(CliDriveFault, GivesUpADriveThatAnswersNoMore) {
  const LoopDrive drive(path("loop"), 64 * mib, 80 * mib);
  if (!drive.why_not().empty()) GTEST_SKIP() << drive.why_not();
  for (const char* engine : {"auto", "threads"}) {
    auto process =
        start({"offload.nvme_paths=" + drive.path().string(), "offload.io_stall_seconds=0.2",
               std::string("offload.io_engine=") + engine});
    drive.freeze();
    EXPECT_TRUE(process->wait_for_error("the run ends here")) << engine;
    drive.thaw();
    const ProcessResult result = process->wait();
    EXPECT_EQ(result.exit_code, exit_drive_stalled) << engine;
    EXPECT_THAT(result.err, AllOf(HasSubstr("warning: the drive of "),
                                  HasSubstr("given nothing back for"), HasSubstr("tiles")));
    fs::remove_all(path("out"));
  }
}

TEST_F(CliDriveFault, ExplainsWhatAKilledRunLeftUntilTheNextReclaimsIt) {
  auto process = start({"offload.verify_nvme=true"});
  const fs::path store = tiles().parent_path();
  const ProcessResult alive = run({"inspect", store});
  EXPECT_EQ(alive.exit_code, 0) << alive.err;
  EXPECT_THAT(alive.out, AllOf(HasSubstr("scratch"), HasSubstr("moment1"), HasSubstr("alive")));
  process->kill(SIGKILL);
  EXPECT_EQ(process->wait().signal, SIGKILL);
  EXPECT_THAT(names_in("nvme"), SizeIs(1));
  const ProcessResult dead = run({"inspect", store, "--verify"});
  EXPECT_EQ(dead.exit_code, 0) << dead.out << dead.err;
  EXPECT_THAT(dead.out,
              AllOf(HasSubstr("scratch"), HasSubstr("moment1"), HasSubstr("owner    none")));
  const ProcessResult next = run(train({"output_dir=" + path("next").string()}));
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_THAT(next.out, HasSubstr("dead run"));
  EXPECT_THAT(names_in("nvme"), IsEmpty());
}

}  // namespace
}  // namespace strata
