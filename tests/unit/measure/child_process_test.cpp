#include "src/measure/child_process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <stdexcept>

namespace strata {
namespace {

std::optional<ChildOutput> shell(const std::string& script,
                                 const std::vector<std::string>& environment = {}) {
  return run_child({"sh", "-c", script}, environment, [] {});
}

TEST(ChildProcess, GivesOutputAndStatus) {
  const auto output = shell("echo one; echo two; echo noise >&2; exit 3");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "one\ntwo\n");
  EXPECT_EQ(output->exit_status, 3);
}

TEST(ChildProcess, GivesAllOfALongOutput) {
  const auto output = shell("i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text.size(), 20000u * 11);
}

TEST(ChildProcess, PassesArgumentsAsTheyAre) {
  const auto output = run_child({"printf", "%s|", "a b", "$HOME", "'q'"}, {}, [] {});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "a b|$HOME|'q'|");
}

TEST(ChildProcess, SeesOurEnvironmentWithWhatIsAddedAndReplaced) {
  ::setenv("STRATA_TEST_KEPT", "kept", 1);
  ::setenv("STRATA_TEST_REPLACED", "old", 1);
  const auto output = shell("echo $STRATA_TEST_KEPT $STRATA_TEST_REPLACED $STRATA_TEST_ADDED",
                            {"STRATA_TEST_REPLACED=new", "STRATA_TEST_ADDED=added"});
  ASSERT_TRUE(output);
  EXPECT_EQ(output->text, "kept new added\n");
}

TEST(ChildProcess, IsNothingWhenThereIsNoSuchProgram) {
  EXPECT_FALSE(run_child({"strata-no-such-program"}, {}, [] {}));
}

TEST(ChildProcess, ThatIsKilledSaysByWhat) {
  const auto output = shell("kill -9 $$");
  ASSERT_TRUE(output);
  EXPECT_EQ(output->exit_status, 128 + SIGKILL);
}

TEST(ChildProcess, IsEndedWhenTheTickThrows) {
  EXPECT_THROW(run_child({"sleep", "1000"}, {}, [] { throw std::runtime_error("enough"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace strata
