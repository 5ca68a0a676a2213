#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <optional>

#include "strata/telemetry/progress.hpp"

namespace strata {
namespace {

StepReport report() {
  return {.step = 12,
          .total_steps = 200,
          .epoch = 0.5,
          .loss = 1.8341,
          .grad_norm = 0.9234,
          .learning_rate = 9.8e-6,
          .seconds = 2.31,
          .tokens = 1876,
          .applied = true,
          .waits = {{"nvme", 0.04}, {"update", 0.11}},
          .busy = {{"compute", 2.1}},
          .nvme_bytes_read = 1000,
          .nvme_bytes_written = 2000};
}

TEST(FormatStep, IsTheDocumentedLine) {
  EXPECT_EQ(format_step(report(), 432),
            "step 12/200 | loss 1.834 | norm 0.92 | lr 9.8e-06 | 812 tok/s | 2.31 s (wait: nvme "
            "0.04 update 0.11) | eta 7m12s");
}

TEST(FormatStep, LeavesOutWaitsThatThereAreNot) {
  StepReport quiet = report();
  quiet.waits.clear();
  EXPECT_TRUE(format_step(quiet, 432).ends_with("| 2.31 s | eta 7m12s"));
}

TEST(FormatStep, TellsHowMuchOfAKnownBoundWasReached) {
  StepReport bounded = report();
  bounded.of_bound = 0.914;
  EXPECT_NE(format_step(bounded, 432).find("| 2.31 s, 91% of the bound (wait: nvme 0.04"),
            std::string::npos);
}

TEST(FormatStep, TellsWhatTheModelCameToAndOfWhatWhereThatIsKnown) {
  StepReport computed = report();
  computed.model.flops = 900e12;
  EXPECT_NE(format_step(computed, 432).find("| 812 tok/s | 390 TFLOP/s | 2.31 s (wait"),
            std::string::npos);
  computed.model.peak_flops_per_s = 989e12;
  EXPECT_NE(format_step(computed, 432).find("| 812 tok/s | 390 TFLOP/s, MFU 39% | 2.31 s (wait"),
            std::string::npos);
}

TEST(FormatWritten, TellsOfWhatWasWritten) {
  EXPECT_EQ(format_written({}), "");
  EXPECT_EQ(format_written({.nvme = 1'230'000'000'000}), "written  1.23 TB to NVMe");
  EXPECT_EQ(format_written({.checkpoints = 5'000}), "written  5.00 kB of checkpoints");
  EXPECT_EQ(format_written({1'230'000'000'000, 45'600'000'000}),
            "written  1.23 TB to NVMe, 45.6 GB of checkpoints");
}

TEST(FormatStep, LeavesOutAnUnknownEta) {
  EXPECT_TRUE(
      format_step(report(), std::numeric_limits<double>::quiet_NaN()).ends_with("update 0.11)"));
}

TEST(FormatStep, SaysThatAStepWasSkippedAndShowsNan) {
  StepReport skipped = report();
  skipped.applied = false;
  skipped.loss = std::numeric_limits<double>::quiet_NaN();
  const std::string line = format_step(skipped, 1);
  EXPECT_NE(line.find("loss nan"), std::string::npos);
  EXPECT_TRUE(line.ends_with("| skipped: non-finite gradients"));
}

TEST(FormatStep, ShortensLargeRates) {
  StepReport fast = report();
  fast.seconds = 1;
  fast.tokens = 12345;
  EXPECT_NE(format_step(fast, 1).find("| 12.3k tok/s |"), std::string::npos);
  fast.tokens = 1234567;
  EXPECT_NE(format_step(fast, 1).find("| 1.2M tok/s |"), std::string::npos);
}

TEST(FormatDuration, UsesTwoUnitsAtMost) {
  EXPECT_EQ(format_duration(0), "0s");
  EXPECT_EQ(format_duration(42), "42s");
  EXPECT_EQ(format_duration(59.7), "1m00s");
  EXPECT_EQ(format_duration(432), "7m12s");
  EXPECT_EQ(format_duration(42060), "11h41m");
  EXPECT_EQ(format_duration(-5), "0s");
  EXPECT_EQ(format_duration(1e300), format_duration(1e9));
}

TEST(FormatSaved, TellsWhatItTookTrainingWhereThatIsKnown) {
  SaveReport report{4, "out/checkpoint-4", 3ull << 30, 2};
  const std::string still =
      "saved out/checkpoint-4 at step 4: 3.00 GiB in 2.00 s (1.50 GiB/s), verified";
  EXPECT_EQ(format_saved(report), still);
  report.steps_meanwhile = 1;
  report.carrier_extra_seconds = report.extra_seconds = 0.125;
  EXPECT_EQ(format_saved(report), still + "; step 5 took 0.12 s more");
  report.steps_meanwhile = 3;
  report.extra_seconds = -0.5;
  EXPECT_EQ(format_saved(report),
            still + "; step 5 took 0.12 s more, the 3 steps meanwhile 0.00 s");
}

// Sets or removes an environment variable for the length of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Environment() { set(before_ ? before_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    if (value != nullptr)
      ::setenv(name_, value, 1);
    else
      ::unsetenv(name_);
  }
  const char* name_;
  std::optional<std::string> before_;
};

class TerminalStyle : public ::testing::Test {
 protected:
  void SetUp() override {
    primary_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    if (primary_ < 0 || ::grantpt(primary_) != 0 || ::unlockpt(primary_) != 0)
      GTEST_SKIP() << "no pseudo-terminals";
    terminal_ = std::fopen(::ptsname(primary_), "r+");
    if (terminal_ == nullptr) GTEST_SKIP() << "no pseudo-terminals";
  }
  void TearDown() override {
    if (terminal_ != nullptr) std::fclose(terminal_);
    if (primary_ >= 0) ::close(primary_);
  }
  int primary_ = -1;
  std::FILE* terminal_ = nullptr;
};

TEST_F(TerminalStyle, IsColorOnATerminal) {
  const Environment no_color("NO_COLOR", nullptr), term("TERM", "xterm");
  EXPECT_EQ(terminal_style(terminal_), Style::color);
}

TEST_F(TerminalStyle, IsPlainWhenNoColorIsSetToAnything) {
  const Environment term("TERM", "xterm"), no_color("NO_COLOR", "0");
  EXPECT_EQ(terminal_style(terminal_), Style::plain);
}

TEST_F(TerminalStyle, IsPlainOnADumbTerminal) {
  const Environment no_color("NO_COLOR", nullptr), term("TERM", "dumb");
  EXPECT_EQ(terminal_style(terminal_), Style::plain);
}

TEST_F(TerminalStyle, IsPlainInAFileOrWithoutAStream) {
  const Environment no_color("NO_COLOR", nullptr), term("TERM", "xterm");
  std::FILE* file = std::tmpfile();
  EXPECT_EQ(terminal_style(file), Style::plain);
  std::fclose(file);
  EXPECT_EQ(terminal_style(nullptr), Style::plain);
}

}  // namespace
}  // namespace strata
