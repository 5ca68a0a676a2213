#include "strata/telemetry/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "strata/core/error.hpp"
#include "support/file_size_limit.hpp"
#include "support/own_path.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

StepReport report(std::int64_t step) {
  return {.step = step,
          .total_steps = 10,
          .epoch = 0.25,
          .loss = 1.5,
          .grad_norm = 0.5,
          .learning_rate = 1e-5,
          .seconds = 2,
          .tokens = 1000,
          .applied = true,
          .waits = {{"nvme", 0.25}},
          .busy = {{"compute", 1.5}},
          .nvme_bytes_read = 4096,
          .nvme_bytes_written = 8192};
}

class ProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = own_path("progress");
    fs::remove_all(folder_);
    terminal_ = std::tmpfile();
    ASSERT_NE(terminal_, nullptr);
  }
  void TearDown() override {
    std::fclose(terminal_);
    fs::remove_all(folder_);
  }
  fs::path metrics() const { return folder_ / "metrics.jsonl"; }
  std::string metrics_text() const {
    std::ifstream stream(metrics());
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  std::vector<nlohmann::json> lines() const {
    std::ifstream stream(metrics());
    std::vector<nlohmann::json> objects;
    for (std::string line; std::getline(stream, line);)
      objects.push_back(nlohmann::json::parse(line));
    return objects;
  }
  std::string shown() const {
    std::string text(static_cast<std::size_t>(std::ftell(terminal_)), '\0');
    std::rewind(terminal_);
    text.resize(std::fread(text.data(), 1, text.size(), terminal_));
    return text;
  }
  fs::path folder_;
  std::FILE* terminal_ = nullptr;
};

TEST_F(ProgressTest, WritesEachStepUnderTheUsualNames) {
  Progress progress(folder_, Style::plain, terminal_);
  progress.step(report(1), true);
  EXPECT_EQ(lines().at(0),
            nlohmann::json::parse(R"({"step": 1, "epoch": 0.25, "loss": 1.5, "grad_norm": 0.5,
      "learning_rate": 1e-5, "step_seconds": 2.0, "tokens_per_second": 500.0, "num_tokens": 1000, "applied": true,
      "offload/wait_nvme_s": 0.25, "offload/busy_compute_s": 1.5, "offload/timing_step": 0,
      "offload/nvme_bytes_read": 4096, "offload/nvme_bytes_written": 8192})"));
  std::string line = format_step(report(1), 18);
  line.insert(line.find(" | "), " ");  // as wide as "10/10"
  EXPECT_EQ(shown(), line + "\n");
}

TEST_F(ProgressTest, WritesWhatSeveralRanksExchanged) {
  Progress progress(folder_, Style::plain, terminal_);
  StepReport of_ranks = report(1);
  of_ranks.comm_bytes = 640;
  progress.step(of_ranks, true);
  progress.step(report(2), true);
  EXPECT_EQ(lines().at(0).at("offload/comm_bytes"), 640);
  EXPECT_FALSE(lines().at(1).contains("offload/comm_bytes"));
}

TEST_F(ProgressTest, WritesWhatAStepReachedOfTheMachine) {
  Progress progress(folder_, Style::plain, terminal_);
  StepReport reached = report(1);
  reached.used = {{"compute", 0.75}};
  reached.rates = {{"h2d", 2.5e9}};
  reached.roofline = {{"compute", 0.5}, {"nvme_read", 0.25}};
  progress.step(reached, false);
  const auto line = lines().at(0);
  EXPECT_EQ(line["offload/used_compute"], 0.75);
  EXPECT_EQ(line["offload/bytes_per_second_h2d"], 2.5e9);
  EXPECT_EQ(line["offload/roofline_compute"], 0.5);
  EXPECT_EQ(line["offload/roofline_nvme_read"], 0.25);
}

TEST_F(ProgressTest, WritesWhatTheModelCameTo) {
  Progress progress(folder_, Style::plain, terminal_);
  StepReport computed = report(1);
  computed.model.flops = 3e12;
  progress.step(computed, false);
  computed.model.peak_flops_per_s = 6e12;
  progress.step(computed, false);
  EXPECT_EQ(lines().at(0)["model_flops_per_second"], 1.5e12);
  EXPECT_FALSE(lines().at(0).contains("mfu"));
  EXPECT_EQ(lines().at(1)["mfu"], 0.25);
}

// The run before went on to steps that this one makes anew, and wrote for them all the same.
TEST_F(ProgressTest, TakesUpWhatTheRunBeforeHasWritten) {
  StepReport wrote = report(1);
  {
    Progress progress(folder_, Style::plain, terminal_);
    EXPECT_EQ(progress.written_before(), WrittenBytes{});
    wrote.written = {1000, 0};
    progress.step(wrote, false);
    progress.saved({.step = 1, .path = "a", .bytes = 70, .bytes_total = 70});
    wrote.step = 2;
    wrote.written = {2000, 70};
    progress.step(wrote, false);
    progress.saved({.step = 2, .path = "b", .bytes = 70, .bytes_total = 140});
  }
  const Progress resumed(folder_, Style::plain, terminal_, 1);
  EXPECT_EQ(resumed.written_before(), (WrittenBytes{2000, 140}));
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines().at(0)["offload/nvme_bytes_written_total"], 1000);
  EXPECT_EQ(lines().at(1)["checkpoint_bytes_written_total"], 70);
}

TEST_F(ProgressTest, WritesStepsThatAreNotShown) {
  Progress progress(folder_, Style::plain, terminal_);
  progress.step(report(1), false);
  progress.step(report(2), false);
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_EQ(shown(), "");
}

TEST_F(ProgressTest, WritesNumbersThatAreNotFiniteAsNullWithAFlag) {
  Progress progress(folder_, Style::plain, terminal_);
  StepReport broken = report(1);
  broken.loss = std::numeric_limits<double>::quiet_NaN();
  broken.grad_norm = std::numeric_limits<double>::infinity();
  broken.applied = false;
  progress.step(broken, true);
  progress.evaluation(1, -std::numeric_limits<double>::infinity(), 5);
  const auto step = lines().at(0), evaluation = lines().at(1);
  EXPECT_TRUE(step["loss"].is_null());
  EXPECT_TRUE(step["grad_norm"].is_null());
  EXPECT_EQ(step["non_finite"], nlohmann::json::parse(R"({"loss": "nan", "grad_norm": "inf"})"));
  EXPECT_EQ(step["applied"], false);
  EXPECT_EQ(evaluation["non_finite"]["eval_loss"], "-inf");
}

TEST_F(ProgressTest, WritesEvaluationsAndEvents) {
  Progress progress(folder_, Style::plain, terminal_);
  progress.evaluation(5, 2.0, 123);
  progress.event("throttled", "drive \xff is slow \"now\"");
  EXPECT_EQ(lines().at(0),
            nlohmann::json::parse(R"({"step": 5, "eval_loss": 2.0, "eval_num_tokens": 123})"));
  EXPECT_EQ(lines().at(1)["event"], "throttled");
  EXPECT_THAT(shown(),
              HasSubstr("eval at step 5 | loss 2.0000 | perplexity 7.39 | 123 tokens\n! drive"));
}

TEST_F(ProgressTest, AppendsToWhatIsThere) {
  { Progress(folder_, Style::plain, terminal_).step(report(1), false); }
  { Progress(folder_, Style::plain, terminal_).step(report(2), false); }
  EXPECT_EQ(lines().at(0)["step"], 1);
  EXPECT_EQ(lines().at(1)["step"], 2);
}

TEST_F(ProgressTest, BeginsOnALineOfItsOwnAfterAHalfLine) {
  fs::create_directories(folder_);
  std::ofstream(metrics()) << "{\"step\": 1, \"lo";
  Progress(folder_, Style::plain, terminal_).step(report(2), false);
  EXPECT_THAT(metrics_text(), HasSubstr("\"lo\n{\"step\":2,"));
}

TEST_F(ProgressTest, ColorsOnlyInColorStyle) {
  Progress plain(folder_, Style::plain, terminal_);
  plain.step(report(1), true);
  plain.event("note", "text");
  EXPECT_THAT(shown(), Not(HasSubstr("\033")));
  Progress color(folder_, Style::color, terminal_);
  color.step(report(2), true);
  EXPECT_THAT(shown(), HasSubstr("step 2/10 \033[1m | loss 1.500\033[0m"));
}

TEST_F(ProgressTest, AlignsTheColumnsOfARun) {
  Progress progress(folder_, Style::plain, terminal_);
  progress.step(report(9), true);
  progress.step(report(10), true);
  EXPECT_THAT(shown(), HasSubstr("step 9/10  | loss 1.500 |"));
  EXPECT_THAT(shown(), HasSubstr("step 10/10 | loss 1.500 |"));
}

TEST_F(ProgressTest, ForgetsTheFirstStepInTheEta) {
  Progress progress(folder_, Style::plain, terminal_);
  StepReport slow = report(1);
  slow.seconds = 100;
  progress.step(slow, true);
  EXPECT_THAT(shown(), HasSubstr("eta 15m00s"));
  progress.step(report(2), true);
  EXPECT_THAT(shown(), HasSubstr("eta 16s"));
}

TEST_F(ProgressTest, GivesNoEtaToTheLastStep) {
  Progress progress(folder_, Style::plain, terminal_);
  progress.step(report(10), true);
  EXPECT_THAT(shown(), Not(HasSubstr("eta")));
}

TEST_F(ProgressTest, NamesAFolderThatCannotBeMade) {
  std::ofstream(folder_) << "a file";
  EXPECT_THROW(Progress(folder_ / "below", Style::plain, terminal_), SystemError);
}

TEST_F(ProgressTest, WarnsOnceAndGoesOnWhenTheDiskIsFull) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  fs::create_directories(folder_);
  fs::create_symlink("/dev/full", metrics());
  Progress progress(folder_, Style::plain, terminal_);
  progress.step(report(1), true);
  progress.step(report(2), true);
  const std::string text = shown();
  EXPECT_THAT(text, HasSubstr("step 2/10"));
  EXPECT_THAT(text, HasSubstr("! cannot write"));
  EXPECT_THAT(text, HasSubstr("No space left on device"));
  EXPECT_EQ(text.find("! cannot write"), text.rfind("! cannot write"));
}

TEST_F(ProgressTest, KeepsLinesApartAfterAShortWrite) {
  Progress progress(folder_, Style::plain, terminal_);
  {
    const FileSizeLimit limit(20);
    progress.step(report(1), false);
  }
  progress.step(report(2), false);
  EXPECT_THAT(metrics_text(), HasSubstr("\n{\"step\":2,"));
  EXPECT_EQ(metrics_text().find('\n'), 20u);
  EXPECT_THAT(shown(), HasSubstr("! cannot write"));
}

}  // namespace
}  // namespace strata
