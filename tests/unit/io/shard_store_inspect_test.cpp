// What `strata inspect` says of a store, whole or damaged.

#include <sys/stat.h>

#include <fstream>

#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class InspectStore : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(directory_.file("a"));
    fs::create_directories(directory_.file("b"));
  }
  std::unique_ptr<ShardStore> make(StoreKind kind) {
    return ShardStore::create(
        *engine_, small_spec(kind, {directory_.file("a"), directory_.file("b")}, 6), verified);
  }
  void make_committed() {
    const auto store = make(StoreKind::versioned);
    for (int i = 0; i < 5; ++i) write_tile(*store, i, 1);
    store->commit(17, "step 17\nloss 2.5");
  }
  // As a store spells it.
  std::string part(const std::string& name) const {
    return fs::path(directory_.file(name)).lexically_normal();
  }
  void flip(const std::string& file, std::streamoff at) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const auto byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(at);
    stream.put(byte);
    ASSERT_TRUE(stream.good());
  }

  TempDirectory directory_;
  const std::string path_ = directory_.file("a/run");
  std::unique_ptr<IoEngine> engine_ = make_io_engine("threads", {});
};

TEST_F(InspectStore, TellsKindDrivesRolesVersionAndThatEveryTileIsWhole) {
  make_committed();
  EXPECT_TRUE(is_store(path_));
  EXPECT_FALSE(is_store(directory_.path()));
  const std::string text = inspect_store(path_, Verify::reads);
  EXPECT_THAT(text, AllOf(HasSubstr("versioned, checksums on"), HasSubstr("17"),
                          HasSubstr("step 17.loss 2.5"), HasSubstr(part("b/run")),
                          HasSubstr("master"), HasSubstr("moment1")));
  EXPECT_THAT(text, HasSubstr("5 read"));
  EXPECT_THAT(text, HasSubstr("5 whole, 0 damaged, 1 never written"));
  EXPECT_THAT(text, Not(HasSubstr("FAILED")));
}

TEST_F(InspectStore, TellsWhetherTheOwnerIsAlive) {
  auto store = make(StoreKind::versioned);
  EXPECT_THAT(inspect_store(path_, Verify::off),
              HasSubstr("process " + std::to_string(::getpid()) + ", alive"));
  store.reset();
  EXPECT_THAT(inspect_store(path_, Verify::off),
              AllOf(HasSubstr("owner    none"), HasSubstr("none committed yet")));
}

TEST_F(InspectStore, ChangesNothing) {
  make_committed();
  fs::remove(path_ + "/lock");
  inspect_store(path_, Verify::reads);
  EXPECT_FALSE(fs::exists(path_ + "/lock"));
}

TEST_F(InspectStore, HasNothingToVerifyInScratch) {
  const auto store = make(StoreKind::scratch);
  write_tile(*store, 0, 1);
  const std::string text = inspect_store(store->path(), Verify::reads);
  EXPECT_THAT(
      text, AllOf(HasSubstr("scratch"), HasSubstr("nothing to verify"), Not(HasSubstr("FAILED"))));
}

TEST_F(InspectStore, NamesTheDamagedTileOnALineOfItsOwn) {
  make_committed();
  flip(directory_.file("b/run/tiles"), 100);
  const std::string text = inspect_store(path_, Verify::reads);
  EXPECT_THAT(text, AllOf(HasSubstr("\nFAILED   tile 'moment1/block.1 tile 0'"),
                          HasSubstr("4 whole, 1 damaged")));
  EXPECT_THAT(inspect_store(path_, Verify::off), Not(HasSubstr("FAILED")));
}

TEST_F(InspectStore, GoesOnWithWhatIsLeftOfADamagedStore) {
  make_committed();
  fs::remove_all(directory_.file("b/run"));
  const std::string text = inspect_store(path_, Verify::reads);
  EXPECT_THAT(text, AllOf(HasSubstr("FAILED   " + part("b/run")), HasSubstr("damaged or missing"),
                          HasSubstr("3 read")));
}

TEST_F(InspectStore, TellsOfDamageInTheSmallFiles) {
  make_committed();
  flip(path_ + "/manifest.0", 20);
  EXPECT_THAT(inspect_store(path_, Verify::off),
              AllOf(HasSubstr("FAILED   " + path_ + "/manifest.0"), HasSubstr("moment1")));
  flip(path_ + "/store.json", 30);
  EXPECT_THAT(inspect_store(path_, Verify::off), HasSubstr("FAILED   " + path_ + "/store.json"));
  fs::remove(path_ + "/store.json");
  EXPECT_FALSE(is_store(path_));
  EXPECT_THAT(inspect_store(path_, Verify::off), HasSubstr("store.json is missing"));
}

TEST_F(InspectStore, IsNotHeldUpByAFifoInPlaceOfTheTiles) {
  make_committed();
  const std::string tiles = directory_.file("b/run/tiles");
  fs::remove(tiles);
  ASSERT_EQ(::mkfifo(tiles.c_str(), 0600), 0);
  EXPECT_THAT(inspect_store(path_, Verify::reads),
              AllOf(HasSubstr("FAILED   cannot open (no regular file) " + part("b/run/tiles")),
                    HasSubstr("3 read")));
  EXPECT_THAT(error_of([&] { ShardStore::open(*engine_, path_, verified); }),
              HasSubstr("no regular file"));
}

TEST_F(InspectStore, RefusesWhatIsNotThere) {
  EXPECT_THAT(error_of<ConfigError>([&] { inspect_store(path_, Verify::off); }),
              HasSubstr("no such directory"));
}

}  // namespace
}  // namespace strata::testing
