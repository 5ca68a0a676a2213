// The folders of the NVMe tier belong to one job at a time; whoever comes second is told whose.

#include "strata/io/store/drive_owner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "contract/io/io_testing.hpp"
#include "strata/core/error.hpp"
#include "strata/io/io_engine.hpp"
#include "support/forked_child.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::unique_ptr<DriveOwner> take(const std::vector<std::string>& directories,
                                 DriveUse use = DriveUse::run) {
  return DriveOwner::take(posix_file_system(), directories, use);
}

std::string own_process() { return "process " + std::to_string(::getpid()) + " on host "; }

TEST(DriveOwner, RefusesASecondNamingTheFirst) {
  const TempDirectory one, two;
  const auto owner = take({one.path(), two.path()});
  EXPECT_THAT([&] { take({two.path()}); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr(two.path() + " is in use"),
                                               HasSubstr(own_process()), HasSubstr(" since 2"),
                                               HasSubstr("offload.nvme_paths"))));
  EXPECT_THAT([&] { take({one.path()}, DriveUse::benchmark); },
              ThrowsMessage<ConfigError>(HasSubstr("a benchmark now would disturb it")));
}

TEST(DriveOwner, TakesAllOrNone) {
  const TempDirectory one, two;
  auto owner = take({two.path()});
  EXPECT_THROW(take({one.path(), two.path()}), ConfigError);
  EXPECT_NE(take({one.path()}), nullptr);
}

TEST(DriveOwner, LeavesNothingBehind) {
  const TempDirectory directory;
  take({directory.path()}).reset();
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(DriveOwner, OfAProcessThatDiedStandsInNobodysWay) {
  const TempDirectory directory;
  ASSERT_EQ(in_child([&] {
              take({directory.path()}).release();  // as in a process that is killed
              return std::string("taken");
            }),
            "taken");
  EXPECT_FALSE(fs::is_empty(directory.path()));
  EXPECT_EQ(drive_user(posix_file_system(), directory.path()), "");
  const auto owner = take({directory.path()});
  EXPECT_THAT(in_child([&] {
                take({directory.path()});
                return std::string("taken");
              }),
              HasSubstr(own_process()));
}

TEST(DriveOwner, IsToldToThoseWhoOnlyAsk) {
  const TempDirectory directory;
  EXPECT_EQ(drive_user(posix_file_system(), directory.path()), "");
  auto owner = take({directory.path()});
  EXPECT_THAT(drive_user(posix_file_system(), directory.path()), HasSubstr(own_process()));
  owner.reset();
  EXPECT_EQ(drive_user(posix_file_system(), directory.path()), "");
}

// The lock of another user's dead run: readable, not writable.
TEST(DriveOwner, TakesWhatItMayNotWrite) {
  const TempDirectory directory;
  for (const char* name : {".strata-nvme-lock", ".strata-nvme-owner"}) {
    posix_file_system().write_file(directory.file(name), {});
    fs::permissions(directory.file(name), fs::perms(0444));
  }
  fs::permissions(directory.path(), fs::perms(01777));
  const std::string said = in_child([&] {
    if (!drop_rights()) return std::string("no rights to drop");
    const auto owner = take({directory.path()});
    take({directory.path()});
    return std::string("taken twice");
  });
  if (said == "no rights to drop") GTEST_SKIP() << said;
  EXPECT_THAT(said, AllOf(HasSubstr("is in use by another run"), HasSubstr("process ")));
}

}  // namespace
}  // namespace strata::testing
