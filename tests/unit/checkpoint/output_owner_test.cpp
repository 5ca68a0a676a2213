// One run at a time writes to an output folder, and whoever comes second is told who has it.

#include <unistd.h>

#include "support/forked_child.hpp"
#include "unit/checkpoint/checkpoint_testing.hpp"
#include "unit/checkpoint/state_checkpoint_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string refusal_of(FileSystem& files, const std::string& directory) {
  return error_of<ConfigError>([&] { OutputOwner::take(files, directory); });
}

std::string as_process(long process) { return "process " + std::to_string(process); }

TEST(OutputOwner, IsOneOnly) {
  const TempDirectory directory;
  auto owner = OutputOwner::take(posix_file_system(), directory.path());
  EXPECT_THAT(refusal_of(posix_file_system(), directory.path()),
              AllOf(HasSubstr(directory.path() + " is in use by another run"),
                    HasSubstr(as_process(::getpid()) + " on host "), HasSubstr(" since 2"),
                    HasSubstr("or name another output_dir")));
  owner.reset();
  EXPECT_NE(OutputOwner::take(posix_file_system(), directory.path()), nullptr);
}

TEST(OutputOwner, IsToldToAnotherProcess) {
  const TempDirectory directory;
  const auto owner = OutputOwner::take(posix_file_system(), directory.path());
  EXPECT_THAT(in_child([&] {
                OutputOwner::take(posix_file_system(), directory.path());
                return std::string("taken");
              }),
              AllOf(HasSubstr("threw: "), HasSubstr(as_process(::getpid()) + " on host ")));
}

TEST(OutputOwner, GivesItUpWhenItsProcessDies) {
  const TempDirectory directory;
  EXPECT_EQ(in_child([&] {
              // Never destroyed, as in a process that is killed.
              OutputOwner::take(posix_file_system(), directory.path()).release();
              return std::string("taken");
            }),
            "taken");
  EXPECT_TRUE(posix_file_system().exists(directory.file(".strata-owner"))) << "what it left";
  const auto owner = OutputOwner::take(posix_file_system(), directory.path());
  EXPECT_THAT(refusal_of(posix_file_system(), directory.path()),
              HasSubstr(as_process(::getpid()) + " on host "));
}

// A run that has the lock and has not yet said who it is, after one that was killed.
TEST(OutputOwner, IsNotMistakenForOneThatWasKilled) {
  const TempDirectory directory;
  const std::string line = "process 1 on host elsewhere since 2020-01-01 00:00:00 UTC\n";
  posix_file_system().write_file(directory.file(".strata-owner"), std::as_bytes(std::span(line)));
  const auto lock = posix_file_system().try_lock(directory.file(".strata-lock"));
  const std::string text = refusal_of(posix_file_system(), directory.path());
  if (text.find(as_process(::getpid())) == std::string::npos)
    GTEST_SKIP() << "the kernel does not tell here who has a lock: " << text;
  EXPECT_THAT(text, Not(HasSubstr("elsewhere")));
}

TEST(OutputOwner, IsNamedAlsoWhereTheKernelDoesNotTell) {
  const auto engine = make_sim_engine({});
  auto owner = OutputOwner::take(engine->file_system(), "/out");
  EXPECT_THAT(refusal_of(engine->file_system(), "/out"), HasSubstr(as_process(::getpid())));
  const std::string line = "nonsense\x1b[31m";
  engine->file_system().write_file("/out/.strata-owner", std::as_bytes(std::span(line)));
  EXPECT_THAT(refusal_of(engine->file_system(), "/out"),
              HasSubstr("a process that cannot be told"));
  const std::string other = "process 7 on host a\x1b[31m since then";
  engine->file_system().write_file("/out/.strata-owner", std::as_bytes(std::span(other)));
  EXPECT_THAT(refusal_of(engine->file_system(), "/out"),
              AllOf(HasSubstr("process 7 on host a"), Not(HasSubstr("\x1b"))));
  owner.reset();
  EXPECT_FALSE(engine->file_system().exists("/out/.strata-owner"));
}

TEST(OutputOwner, NeedsAFolder) {
  EXPECT_THROW(OutputOwner::take(posix_file_system(), ::testing::TempDir() + "/nowhere-at-all"),
               SystemError);
}

}  // namespace
}  // namespace strata::testing
