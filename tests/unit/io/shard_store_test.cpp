// Scratch stores on the file system of the host.

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "io/store/dead_stores.hpp"
#include "strata/topology/topology.hpp"
#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<fs::path> files_in(const std::string& directory) {
  return {fs::directory_iterator(directory), fs::directory_iterator()};
}

StoreSpec one_tile(const std::string& directory, std::uint64_t bytes) {
  StoreSpec spec;
  spec.directories = {directory};
  spec.tiles = {{.name = "master/a tile 0", .bytes = bytes, .drive = 0}};
  return spec;
}

class ShardStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<ShardStore> make(std::uint64_t bytes) { return make(directory_.path(), bytes); }
  std::unique_ptr<ShardStore> make(const std::string& directory, std::uint64_t bytes) {
    return ShardStore::create(engine(), one_tile(directory, bytes), {});
  }
  // Made when first asked for: a test that forks does so before there are threads.
  IoEngine& engine() {
    if (!engine_) engine_ = make_io_engine("auto", {.queue_depth = 8, .chunk_bytes = 64 * KiB});
    return *engine_;
  }

  TempDirectory directory_;
  std::unique_ptr<IoEngine> engine_;
};

TEST_F(ShardStoreTest, ReservesAVisibleFileOfTheExactSizeAndRemovesItAtTheEnd) {
  auto store = make(300 * KiB);
  const std::string tiles = store->path() + "/tiles";
  EXPECT_EQ(fs::file_size(tiles), 300 * KiB);
  EXPECT_GE(store->allocated_bytes(), 300 * KiB);
  EXPECT_THAT(store->describe(), AllOf(HasSubstr(tiles), HasSubstr("300 KiB")));
  EXPECT_THAT(files_in(directory_.path()), SizeIs(1));
  store.reset();
  EXPECT_THAT(files_in(directory_.path()), SizeIs(0));
}

TEST_F(ShardStoreTest, GivesBackTilesFromEveryDrive) {
  fs::create_directories(directory_.file("a"));
  fs::create_directories(directory_.file("b"));
  const auto spec = small_spec(StoreKind::scratch, {directory_.file("a"), directory_.file("b")}, 7);
  const auto store = ShardStore::create(engine(), spec, {});
  for (int i = 0; i < 7; ++i) write_tile(*store, i, 1);
  write_tile(*store, 3, 2);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(holds(*store, i, i == 3 ? 2 : 1));
  EXPECT_THAT(files_in(directory_.file("a")), SizeIs(1));
  EXPECT_THAT(files_in(directory_.file("b")), SizeIs(1));
}

TEST_F(ShardStoreTest, KnowsItsTilesByNameAndPadsThemToItsAlignment) {
  const auto store =
      ShardStore::create(engine(), small_spec(StoreKind::scratch, {directory_.path()}, 5), {});
  ASSERT_EQ(store->num_tiles(), 5);
  EXPECT_EQ(store->find("moment1/block.3 tile 0"), 3);
  EXPECT_EQ(store->find("moment1/block.3"), std::nullopt);
  EXPECT_EQ(store->tile(4).bytes, 4096u + 100);
  EXPECT_EQ(store->padded_bytes(4) % store->alignment(), 0u);
  EXPECT_GE(store->padded_bytes(4), 8192u);
}

TEST_F(ShardStoreTest, TakesADriveWithNothingOnIt) {
  StoreSpec spec;
  spec.directories = {directory_.path()};
  EXPECT_EQ(ShardStore::create(engine(), spec, {})->num_tiles(), 0);
}

TEST_F(ShardStoreTest, TakesNoDrivesAtAll) {
  EXPECT_EQ(ShardStore::create(engine(), {}, {})->allocated_bytes(), 0u);
}

TEST_F(ShardStoreTest, TakesOneDirectoryForTwoDrives) {
  const auto spec = small_spec(StoreKind::scratch, {directory_.path(), directory_.path()}, 4);
  const auto store = ShardStore::create(engine(), spec, {});
  for (int i = 0; i < 4; ++i) write_tile(*store, i, 9);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(holds(*store, i, 9));
  EXPECT_THAT(files_in(directory_.path()), SizeIs(2));
}

TEST_F(ShardStoreTest, ReclaimsTheFileThatADeadRunOfTheLastReleaseLeftBehindAndSaysSo) {
  const std::string stale = directory_.file("strata-scratch-1-0.tiles");
  std::ofstream(stale) << std::string(8192, 'x');
  std::ofstream(directory_.file("notes.txt")) << "mine";
  const auto store = make(64 * KiB);
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_TRUE(fs::exists(directory_.file("notes.txt")));
  EXPECT_THAT(store->describe(), HasSubstr("removed 1 scratch files of dead runs"));
}

TEST_F(ShardStoreTest, LeavesTheFileOfALiveRunOfTheLastReleaseAlone) {
  const std::string live = directory_.file("strata-scratch-1-0.tiles");
  const int file = ::open(live.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  const auto store = make(64 * KiB);
  EXPECT_TRUE(fs::exists(live));
  EXPECT_THAT(store->describe(), ::testing::Not(HasSubstr("dead runs")));
  ::close(file);
}

TEST_F(ShardStoreTest, CountsWhatDeadRunsLeftAndLeavesItThere) {
  const auto live = make(64 * KiB);
  const std::string dead = directory_.file("strata-scratch-1-0.tiles");
  std::ofstream(dead) << std::string(256 * KiB, 'x') << std::flush;
  const DeadScratch found = find_dead_scratch(posix_file_system(), directory_.path());
  EXPECT_EQ(found.num_stores, 1);
  EXPECT_GE(found.bytes, 256 * KiB);
  EXPECT_TRUE(fs::exists(dead));
  EXPECT_GE(available_drive_bytes(directory_.path()), 256 * KiB);
}

TEST_F(ShardStoreTest, LeavesAFolderOfAScratchNameAloneThatHoldsSomethingElse) {
  const std::string folder = directory_.file("strata-scratch-notes");
  fs::create_directories(folder);
  std::ofstream(folder + "/mine.txt") << "mine";
  make(64 * KiB);
  EXPECT_TRUE(fs::exists(folder + "/mine.txt"));
}

// Makes a store in a process of its own, which is then killed.
void make_and_be_killed(const StoreSpec& spec) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto engine = make_io_engine("threads", {});
    const auto store = ShardStore::create(*engine, spec, {});
    const bool told = ::write(ready[1], "x", 1) == 1;
    while (told) ::pause();
    ::_exit(1);
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(ShardStoreTest, ReclaimsTheScratchStoreOfAProcessThatWasKilled) {
  make_and_be_killed(one_tile(directory_.path(), 128 * KiB));
  ASSERT_THAT(files_in(directory_.path()), SizeIs(1));
  EXPECT_GE(find_dead_scratch(posix_file_system(), directory_.path()).bytes, 128 * KiB);
  const auto store = make(64 * KiB);
  EXPECT_THAT(store->describe(), HasSubstr("removed 1 scratch files of dead runs"));
  EXPECT_THAT(files_in(directory_.path()), SizeIs(1));
}

TEST_F(ShardStoreTest, NeverReclaimsAVersionedStore) {
  StoreSpec spec = one_tile(directory_.path(), 128 * KiB);
  spec.kind = StoreKind::versioned;
  spec.name = "mine";
  make_and_be_killed(spec);
  make(64 * KiB);
  const auto store = ShardStore::open(engine(), directory_.file("mine"), {});
  EXPECT_EQ(store->committed_version(), std::nullopt);
}

TEST_F(ShardStoreTest, LeavesTheStoreOfALiveRunAlone) {
  const auto first = make(64 * KiB);
  write_tile(*first, 0, 1);
  const auto second = make(64 * KiB);
  EXPECT_THAT(files_in(directory_.path()), SizeIs(2));
  write_tile(*second, 0, 2);
  EXPECT_TRUE(holds(*first, 0, 1));
}

TEST_F(ShardStoreTest, RefusesADirectoryThatIsNotThere) {
  const auto message = error_of<ConfigError>([&] { make(directory_.file("missing"), 4096); });
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

TEST_F(ShardStoreTest, RefusesADirectoryThatCannotBeWritten) {
  using fs::perms;
  engine();
  fs::permissions(directory_.path(),
                  perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
  const auto message = error_of<ConfigError>([&] {
    const AsNobody nobody;
    make(4096);
  });
  fs::permissions(directory_.path(), perms::owner_all);
  EXPECT_THAT(message, AllOf(HasSubstr(directory_.path()), HasSubstr("Permission denied"),
                             HasSubstr("that this user can write")));
}

TEST_F(ShardStoreTest, RefusesMoreThanIsFreeAndSaysHowMuch) {
  const std::uint64_t wanted = read_file_system(directory_.path()).free_bytes + 100 * GiB;
  const auto message = error_of<ConfigError>([&] { make(align_up(wanted, 4096)); });
  EXPECT_THAT(message, AllOf(HasSubstr("needs"), HasSubstr("free"), HasSubstr(directory_.path())));
  EXPECT_THAT(files_in(directory_.path()), SizeIs(0));
}

TEST_F(ShardStoreTest, NeverCallsMemoryADrive) {
  const std::string memory = "/dev/shm";
  if (!fs::is_directory(memory) || !read_file_system(memory).in_memory) {
    GTEST_SKIP() << memory << " is not a tmpfs here";
  }
  EXPECT_THAT(error_of<ConfigError>([&] { make(memory, 4096); }),
              AllOf(HasSubstr("tmpfs"), HasSubstr("RAM")));
}

TEST_F(ShardStoreTest, RefusesTilesThatCannotBeStored) {
  const auto refusal = [&](std::vector<StoreTile> tiles) {
    StoreSpec spec = one_tile(directory_.path(), 4096);
    spec.tiles = std::move(tiles);
    return error_of<ConfigError>([&] { ShardStore::create(engine(), spec, {}); });
  };
  EXPECT_THAT(refusal({{"a", 1, 0}, {"b", 1, 0}, {"a", 1, 0}}), HasSubstr("two tiles"));
  EXPECT_THAT(refusal({{"a", 0, 0}}), HasSubstr("of 0 bytes"));
  EXPECT_THAT(refusal({{"a", ~std::uint64_t{0}, 0}}), HasSubstr("cannot be stored"));
  EXPECT_THAT(refusal({{"a", 1, 1}}), HasSubstr("drive 1 of 1"));
  EXPECT_THAT(refusal({{"a\n", 1, 0}}), HasSubstr("printable"));
  EXPECT_THAT(refusal({{"\xff", 1, 0}}), HasSubstr("UTF-8"));
  EXPECT_THAT(files_in(directory_.path()), SizeIs(0));
}

TEST_F(ShardStoreTest, RefusesOptionsThatContradictThemselves) {
  const auto refusal = [&](const StoreOptions& options) {
    return error_of<ConfigError>(
        [&] { ShardStore::create(engine(), one_tile(directory_.path(), 4096), options); });
  };
  EXPECT_THAT(refusal({.verify = Verify::reads}), HasSubstr("checksums"));
  EXPECT_THAT(refusal({.hash_threads = 0}), HasSubstr("hash threads"));
}

// Runs that start at the same moment on one drive look for dead scratch while others' is being
// made.
TEST_F(ShardStoreTest, IsNotTakenForDeadByARunThatStartsAtTheSameMoment) {
  std::vector<std::jthread> runs;
  for (int run = 0; run < 4; ++run) {
    runs.emplace_back([&, run] {
      const auto own = make_io_engine("threads", {.num_threads = 1});
      for (int i = 0; i < 15; ++i) {
        const auto store = ShardStore::create(*own, one_tile(directory_.path(), 4096), {});
        write_tile(*store, 0, static_cast<std::uint64_t>(run));
        EXPECT_TRUE(holds(*store, 0, static_cast<std::uint64_t>(run)));
        EXPECT_TRUE(fs::exists(store->path() + "/store.json"));
      }
    });
  }
  runs.clear();
  EXPECT_THAT(files_in(directory_.path()), SizeIs(0));
}

}  // namespace
}  // namespace strata::testing
