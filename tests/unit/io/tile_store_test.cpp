#include "strata/io/store/tile_store.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include <fstream>

#include "contract/io/io_testing.hpp"
#include "io/store/scratch_file.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<fs::path> files_in(const std::string& directory) {
  return {fs::directory_iterator(directory), fs::directory_iterator()};
}

template <typename Action>
std::string config_error(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no ConfigError";
}

class TileStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<TileStore> make(std::uint64_t bytes) { return make(directory_.path(), bytes); }
  std::unique_ptr<TileStore> make(const std::string& directory, std::uint64_t bytes) {
    const DriveExtent drive = {directory, bytes};
    return std::make_unique<TileStore>(*engine_, std::span(&drive, 1));
  }

  TempDirectory directory_;
  std::unique_ptr<IoEngine> engine_ =
      make_io_engine("auto", {.queue_depth = 8, .chunk_bytes = 64 * KiB});
};

TEST_F(TileStoreTest, ReservesAVisibleFileOfTheExactSizeAndRemovesItAtTheEnd) {
  auto store = make(300 * KiB);
  const auto files = files_in(directory_.path());
  ASSERT_THAT(files, SizeIs(1));
  EXPECT_EQ(fs::file_size(files[0]), 300 * KiB);
  struct stat facts = {};
  ASSERT_EQ(::stat(files[0].c_str(), &facts), 0);
  EXPECT_GE(static_cast<std::uint64_t>(facts.st_blocks) * 512, 300 * KiB);
  EXPECT_THAT(store->describe(), AllOf(HasSubstr(files[0].string()), HasSubstr("300 KiB")));
  store.reset();
  EXPECT_THAT(files_in(directory_.path()), SizeIs(0));
}

TEST_F(TileStoreTest, GivesBackTilesFromEveryDrive) {
  fs::create_directories(directory_.file("a"));
  fs::create_directories(directory_.file("b"));
  const std::vector<DriveExtent> drives = {{directory_.file("a"), 256 * KiB},
                                           {directory_.file("b"), 512 * KiB}};
  TileStore store(*engine_, drives);
  ASSERT_EQ(store.num_drives(), 2);
  for (int drive = 0; drive < 2; ++drive) {
    const auto written = Buffer::random(128 * KiB, static_cast<std::uint64_t>(drive));
    const Buffer got(128 * KiB);
    store.transfer(IoOp::write, drive, 128 * KiB, written.span());
    Outcome outcome;
    store.submit(IoOp::read, drive, 128 * KiB, got.span(), IoPriority::prefetch, outcome);
    EXPECT_TRUE(outcome.wait().ok()) << outcome.wait().message;
    EXPECT_TRUE(got == written);
  }
}

TEST_F(TileStoreTest, TakesADriveWithNothingOnIt) {
  const auto store = make(0);
  EXPECT_EQ(store->num_drives(), 1);
}

TEST_F(TileStoreTest, TakesNoDrivesAtAll) {
  const TileStore store(*engine_, {});
  EXPECT_EQ(store.num_drives(), 0);
}

TEST_F(TileStoreTest, ReclaimsWhatADeadRunLeftBehindAndSaysSo) {
  const std::string stale = directory_.file("strata-scratch-1-0.tiles");
  std::ofstream(stale) << std::string(8192, 'x');
  std::ofstream(directory_.file("notes.txt")) << "mine";
  const auto store = make(64 * KiB);
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(directory_.file("notes.txt")));
  EXPECT_THAT(store->describe(), HasSubstr("removed 1 scratch files of dead runs"));
}

TEST_F(TileStoreTest, CountsWhatDeadRunsLeftAndLeavesItThere) {
  const auto live = make(64 * KiB);
  const std::string dead = directory_.file("strata-scratch-1-0.tiles");
  std::ofstream(dead) << std::string(256 * KiB, 'x') << std::flush;
  const DeadFiles found = dead_scratch_files(directory_.path());
  EXPECT_EQ(found.num_files, 1);
  EXPECT_GE(found.bytes, 256 * KiB);
  EXPECT_TRUE(fs::exists(dead));
}

TEST_F(TileStoreTest, ReclaimsTheFileOfAProcessThatWasKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    // No destructor runs, as after SIGKILL.
    const int file =
        ::open(directory_.file("strata-scratch-77-0.tiles").c_str(), O_RDWR | O_CREAT, 0600);
    ::_exit(::flock(file, LOCK_EX) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_THAT(files_in(directory_.path()), SizeIs(1));
  const auto store = make(64 * KiB);
  EXPECT_THAT(store->describe(), HasSubstr("dead runs"));
}

TEST_F(TileStoreTest, LeavesTheFilesOfALiveRunAlone) {
  const auto first = make(64 * KiB);
  const auto written = Buffer::random(64 * KiB, 1);
  first->transfer(IoOp::write, 0, 0, written.span());
  const auto second = make(64 * KiB);
  EXPECT_THAT(files_in(directory_.path()), SizeIs(2));
  const auto other = Buffer::random(64 * KiB, 2);
  second->transfer(IoOp::write, 0, 0, other.span());
  const Buffer got(64 * KiB);
  first->transfer(IoOp::read, 0, 0, got.span());
  EXPECT_TRUE(got == written);
}

TEST_F(TileStoreTest, RefusesADirectoryThatIsNotThere) {
  const auto message = config_error([&] { make(directory_.file("missing"), 4096); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("offload.nvme_paths"), HasSubstr(directory_.file("missing"))));
}

// Root may write anywhere: it plays somebody else for a while.
class AsNobody {
 public:
  AsNobody() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(65534) != 0) throw std::runtime_error("seteuid");
  }
  ~AsNobody() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  bool was_root_;
};

TEST_F(TileStoreTest, RefusesADirectoryThatCannotBeWritten) {
  using fs::perms;
  fs::permissions(directory_.path(),
                  perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
  const auto message = config_error([&] {
    const AsNobody nobody;
    make(4096);
  });
  fs::permissions(directory_.path(), perms::owner_all);
  EXPECT_THAT(message,
              AllOf(HasSubstr("cannot create a scratch file in"), HasSubstr("Permission denied")));
}

TEST_F(TileStoreTest, RefusesMoreThanIsFreeAndSaysHowMuch) {
  const std::uint64_t wanted = read_file_system(directory_.path()).free_bytes + 100 * GiB;
  const auto message = config_error([&] { make(align_up(wanted, 4096)); });
  EXPECT_THAT(message, AllOf(HasSubstr("needs"), HasSubstr("free"), HasSubstr(directory_.path())));
  EXPECT_THAT(files_in(directory_.path()), SizeIs(0));
}

TEST_F(TileStoreTest, NeverCallsMemoryADrive) {
  const std::string memory = "/dev/shm";
  if (!fs::is_directory(memory) || !read_file_system(memory).in_memory) {
    GTEST_SKIP() << memory << " is not a tmpfs here";
  }
  EXPECT_THAT(config_error([&] { make(memory, 4096); }),
              AllOf(HasSubstr("tmpfs"), HasSubstr("RAM")));
}

TEST(TileStoreOnASimulatedDisk, NeedsNoDirectory) {
  const auto engine = make_sim_engine({});
  const std::vector<DriveExtent> drives = {{"/nowhere/a", 128 * KiB}, {"/nowhere/a", 128 * KiB}};
  TileStore store(*engine, drives);
  const auto first = Buffer::random(64 * KiB, 1), second = Buffer::random(64 * KiB, 2);
  store.transfer(IoOp::write, 0, 0, first.span());
  store.transfer(IoOp::write, 1, 0, second.span());
  const Buffer got(64 * KiB);
  store.transfer(IoOp::read, 0, 0, got.span());
  EXPECT_TRUE(got == first);
}

TEST(TileStoreOnASimulatedDisk, RefusesMoreThanItsCapacity) {
  const auto engine = make_sim_engine({.capacity_bytes = 64 * KiB});
  const DriveExtent drive = {"/nowhere", 128 * KiB};
  EXPECT_THAT(config_error([&] {
                TileStore(*engine, {&drive, 1});
              }),
              AllOf(HasSubstr("128 KiB"), HasSubstr("64.0 KiB free"), HasSubstr("nvme fractions")));
}

TEST(TileStoreOnASimulatedDisk, FailsTheProbeOfADriveThatFails) {
  const auto engine = make_sim_engine({.faults = {{0, EIO}}});
  const DriveExtent drive = {"/nowhere", 64 * KiB};
  EXPECT_THROW(TileStore(*engine, {&drive, 1}), Error);
}

}  // namespace
}  // namespace strata::testing
