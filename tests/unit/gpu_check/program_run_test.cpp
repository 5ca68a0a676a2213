#include "gpu_check/program_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "support/own_path.hpp"
#include "support/polling.hpp"
#include "support/unhurried.hpp"

namespace strata {
namespace {

using How = ProgramEnd::How;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::filesystem::path file(const std::string& name) { return own_path("program_run_" + name); }

ProgramEnd shell(const std::string& script, double seconds_max = 60) {
  return run_program({{"sh", "-c", script}, seconds_max, file("output"), {{"SAID", "as told"}}});
}

// It is gone, or a zombie that nobody waits for.
bool has_ended(pid_t id) {
  if (::kill(id, 0) != 0) return true;
  std::string state;
  std::ifstream stat("/proc/" + std::to_string(id) + "/stat");
  for (int field = 0; field < 3; ++field) stat >> state;
  return state == "Z" || state.empty();
}

TEST(ProgramRun, TakesBothOutputsTheExitCodeAndTheEnvironment) {
  const ProgramEnd end = shell("echo out; echo \"err $SAID\" >&2; exit 3");
  EXPECT_EQ(end.how, How::exited);
  EXPECT_EQ(end.code, 3);
  EXPECT_EQ(end.output_tail, "out\nerr as told\n");
  EXPECT_EQ(complaint(end), "exit code 3: err as told");
  EXPECT_FALSE(end.succeeded());
}

TEST(ProgramRun, EndsWhatRunsPastItsTimeTogetherWithWhatItStarted) {
  const auto child = file("child");
  const ProgramEnd end = unhurried(
      0.3,
      [&](double seconds) {
        std::filesystem::remove(child);
        return shell("sleep 300 & echo $! > " + child.string() + "; echo begun; wait", seconds);
      },
      [](const ProgramEnd& late) { return late.output_tail.empty(); });
  EXPECT_EQ(end.how, How::timed_out);
  EXPECT_THAT(complaint(end), EndsWith(" s: begun"));
  std::ifstream ids(child);
  pid_t id = 0;
  ids >> id;
  ASSERT_GT(id, 0);
  EXPECT_TRUE(testing::comes_true([&] { return has_ended(id); }))
      << "the child of the program still runs";
}

TEST(ProgramRun, EndsWhatDoesNotListen) {
  const ProgramEnd end = shell("trap '' TERM; while :; do sleep 0.1; done", 0.2);
  EXPECT_EQ(end.how, How::timed_out);
}

TEST(ProgramRun, TellsOfSignals) {
  const ProgramEnd end = shell("kill -SEGV $$");
  EXPECT_EQ(end.how, How::signalled);
  EXPECT_EQ(complaint(end), "ended by signal 11");
}

TEST(ProgramRun, TellsWhyAProgramCannotBeStarted) {
  const ProgramEnd end = run_program({{"no-such-program-at-all"}, 10, file("none"), {}});
  EXPECT_EQ(end.how, How::not_started);
  EXPECT_EQ(complaint(end), "cannot be started: No such file or directory");
}

TEST(ProgramRun, KeepsTheEndOfALongOutput) {
  const ProgramEnd end = shell("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done");
  EXPECT_TRUE(end.succeeded());
  EXPECT_EQ(end.output_tail.size(), 4000u);
  EXPECT_THAT(end.output_tail, EndsWith("line 1999\n"));
}

}  // namespace
}  // namespace strata
