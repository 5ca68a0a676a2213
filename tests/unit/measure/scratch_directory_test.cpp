#include "src/measure/scratch_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "contract/io/io_testing.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using testing::TempDirectory;

// As a process that was killed leaves it: with files and, unless it is fresh, some time ago.
std::string make_leftover(const TempDirectory& parent, const std::string& name, int age_s) {
  const std::string path = parent.file(name);
  fs::create_directory(path);
  std::ofstream(path + "/source") << "bytes";
  const timespec then{::time(nullptr) - age_s, 0};
  const timespec times[] = {then, then};
  ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  return path;
}

TEST(ScratchDirectory, GoesAwayWithItsFiles) {
  const TempDirectory parent;
  std::string path;
  {
    const ScratchDirectory scratch(parent.path());
    path = scratch.path();
    std::ofstream(scratch.file("source")) << "bytes";
    EXPECT_TRUE(fs::exists(path + "/source"));
  }
  EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST(ScratchDirectory, MovesWithoutBeingRemoved) {
  const TempDirectory parent;
  ScratchDirectory first(parent.path());
  const std::string path = first.path();
  const ScratchDirectory second(std::move(first));
  EXPECT_EQ(second.path(), path);
  EXPECT_TRUE(fs::is_directory(path));
}

TEST(ScratchDirectory, IsRefusedWhereThereIsNoParent) {
  const TempDirectory parent;
  EXPECT_THROW(ScratchDirectory(parent.file("missing")), ConfigError);
}

TEST(ScratchDirectory, OfADeadProcessIsReclaimed) {
  const TempDirectory parent;
  const std::string dead = make_leftover(parent, "strata-nvme-bench-abcdef", 3600);
  reclaim_scratch_directories(parent.path());
  EXPECT_FALSE(fs::exists(dead));
}

TEST(ScratchDirectory, OfALiveProcessOrOfSomebodyElseStays) {
  const TempDirectory parent;
  const std::string held = make_leftover(parent, "strata-nvme-bench-held00", 3600);
  const int descriptor = ::open(held.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(descriptor, LOCK_EX), 0);
  const std::string fresh = make_leftover(parent, "strata-nvme-bench-fresh0", 0);
  const std::string other = make_leftover(parent, "somebody-elses", 3600);
  reclaim_scratch_directories(parent.path());
  EXPECT_TRUE(fs::exists(held));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(fs::exists(other));
  ::close(descriptor);
}

}  // namespace
}  // namespace strata
