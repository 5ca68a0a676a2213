// A versioned store at the version before its last, several that commit one after the other, a
// store joined with a scratch store, and reading without owning.

#include <deque>

#include "io/store/joined_store.hpp"
#include "io/store/named_stores.hpp"
#include "io/store/store_reader.hpp"
#include "support/sanitizers.hpp"
#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int num_versioned = 5;
constexpr const char* store_path = "/a/run";

void write_all(ShardStore& store, std::uint64_t stamp) {
  for (int i = 0; i < num_versioned; ++i) write_tile(store, i, stamp);
}

// Versions with their number as the stamp of every tile.
void commit_as(ShardStore& store, std::uint64_t version) {
  write_all(store, version);
  store.commit(version, "note " + std::to_string(version));
}

::testing::AssertionResult holds_all(ShardStore& store, std::uint64_t stamp) {
  for (int i = 0; i < num_versioned; ++i)
    if (auto result = holds(store, i, stamp); !result) return result;
  return ::testing::AssertionSuccess();
}

std::vector<std::uint64_t> versions_of(const FileSystem& files,
                                       const std::string& store = store_path) {
  std::vector<std::uint64_t> versions;
  for (const StoreVersion& version : store_versions(files, store)) {
    versions.push_back(version.version);
    EXPECT_EQ(version.note, "note " + std::to_string(version.version));
  }
  return versions;
}

class StoreVersions : public ::testing::Test {
 protected:
  static std::unique_ptr<ShardStore> create(IoEngine& engine, const std::string& name = "run") {
    StoreSpec spec = small_spec(StoreKind::versioned, {"/a", "/b"}, num_versioned);
    spec.name = name;
    return ShardStore::create(engine, spec, verified);
  }
  void make_two_versions() {
    const auto store = create(*engine_);
    commit_as(*store, 10);
    commit_as(*store, 11);
  }
  std::unique_ptr<ShardStore> open(std::uint64_t version) {
    return ShardStore::open(*engine_, store_path, verified, version);
  }
  FileSystem& files() { return engine_->file_system(); }

  std::unique_ptr<SimEngine> engine_ = make_sim_engine({.seed = 5});
};

TEST_F(StoreVersions, AreTheLastTwo) {
  const auto store = create(*engine_);
  EXPECT_THAT(versions_of(files()), IsEmpty());
  commit_as(*store, 10);
  EXPECT_THAT(versions_of(files()), ElementsAre(10u));
  commit_as(*store, 11);
  EXPECT_THAT(versions_of(files()), ElementsAre(11u, 10u));
  commit_as(*store, 15);
  EXPECT_THAT(versions_of(files()), ElementsAre(15u, 11u));
}

TEST_F(StoreVersions, AreBothWholeUntilSomethingIsWritten) {
  make_two_versions();
  {
    const auto store = open(10);
    EXPECT_EQ(store->committed_version(), 10u);
    EXPECT_EQ(store->committed_note(), "note 10");
    EXPECT_TRUE(holds_all(*store, 10));
    EXPECT_THAT(versions_of(files()), ElementsAre(10u));
  }
  const auto store = ShardStore::open(*engine_, store_path, verified);
  EXPECT_TRUE(holds_all(*store, 10));
  commit_as(*store, 11);
  EXPECT_TRUE(holds_all(*store, 11));
  EXPECT_THAT(versions_of(files()), ElementsAre(11u, 10u));
}

TEST_F(StoreVersions, AreRefusedWhereTheyAreOthers) {
  make_two_versions();
  EXPECT_THAT(error_of([&] { open(9); }), AllOf(HasSubstr("no version 9"), HasSubstr("10 and 11")));
  EXPECT_TRUE(holds_all(*open(11), 11));
}

TEST_F(StoreVersions, AreFoundDamagedWhenTheOneBeforeWasWrittenOver) {
  make_two_versions();
  write_tile(*open(11), 0, 12);
  EXPECT_THAT(error_of([&] { open(10); }), HasSubstr("damaged"));
  EXPECT_TRUE(holds_all(*open(11), 11));
}

TEST_F(StoreVersions, AreNotMistakenWhenTheTwoManifestsContradictEachOther) {
  make_two_versions();
  const auto other = files().read_file("/a/run/manifest.0", 1 << 20);
  {
    const auto store = open(10);
    write_all(*store, 20);
    store->commit(11, "another");
  }
  files().write_file("/a/run/manifest.1", other);
  EXPECT_THAT(error_of([&] { open(11); }),
              AllOf(HasSubstr("/a/run/manifest.1"), HasSubstr("the same version")));
}

// Whatever stops the way back, the version that was asked for can be opened afterwards, and is gone
// on from.
TEST_F(StoreVersions, SurviveAPowerCutAtAnyChangeOfTheWayBack) {
  for (std::uint64_t later = 0;; ++later) {
    engine_ = make_sim_engine({.seed = later % 3});
    make_two_versions();
    engine_->power_fails_at(engine_->changes() + later);
    const bool ended = error_of([&] {
                         const auto store = open(10);
                         write_all(*store, 12);
                       }) == "no error";
    engine_->cut_power();
    const auto store = open(10);
    EXPECT_TRUE(holds_all(*store, 10)) << "change " << later;
    commit_as(*store, 12);
    EXPECT_TRUE(holds_all(*store, 12));
    if (ended || HasFailure()) break;
  }
}

// As ranks do: each commits on its own, and none writes on before all have.
class Lockstep {
 public:
  static constexpr std::size_t num_stores = 3;

  explicit Lockstep(std::uint64_t seed) : engine_(make_sim_engine({.seed = seed})) {}

  void run(std::uint64_t fails_at) {
    engine_->power_fails_at(fails_at);
    std::vector<std::unique_ptr<ShardStore>> stores;
    for (std::size_t i = 0; i < num_stores; ++i) stores.push_back(make(i));
    for (std::uint64_t version = 0; version < 5; ++version) step(stores, version);
  }
  std::uint64_t changes() const { return engine_->changes(); }

  // Opens all at the newest version that all have; nothing where one has none.
  void check() {
    engine_->cut_power();
    std::uint64_t common = ~std::uint64_t{0};
    for (std::size_t i = 0; i < num_stores; ++i) {
      const auto versions = versions_there(i);
      if (versions.empty()) {
        EXPECT_EQ(begun_, 0u);
        return;
      }
      common = std::min(common, versions.front());
    }
    EXPECT_TRUE(common == begun_ || common + 1 == begun_) << common << " of " << begun_;
    for (std::size_t i = 0; i < num_stores; ++i)
      EXPECT_TRUE(holds_all(
          *ShardStore::open(*engine_, "/a/run" + std::to_string(i), verified, common), common));
  }

 private:
  std::unique_ptr<ShardStore> make(std::size_t i) {
    StoreSpec spec = small_spec(StoreKind::versioned, {"/a", "/b"}, num_versioned);
    spec.name = "run" + std::to_string(i);
    return ShardStore::create(*engine_, spec, verified);
  }
  void step(const std::vector<std::unique_ptr<ShardStore>>& stores, std::uint64_t version) {
    for (const auto& store : stores) write_all(*store, version);
    begun_ = version;
    for (const auto& store : stores) store->commit(version, "note " + std::to_string(version));
  }
  std::vector<std::uint64_t> versions_there(std::size_t i) {
    const std::string store = "/a/run" + std::to_string(i);
    const FileSystem& files = engine_->file_system();
    const bool is_made =
        files.exists(store + "/store.json") && !files.exists(store + "/unfinished");
    return is_made ? versions_of(files, store) : std::vector<std::uint64_t>();
  }

  std::unique_ptr<SimEngine> engine_;
  std::uint64_t begun_ = 0;  // the last version that any store may have
};

TEST(StoresInLockstep, HaveAVersionInCommonAfterAPowerCutAtAnyChange) {
  constexpr std::uint64_t never = ~std::uint64_t{0};
  Lockstep whole(0);
  whole.run(never);
  const std::uint64_t changes = whole.changes();
  for (std::uint64_t at = 0; at < changes; at += static_cast<std::uint64_t>(rounds(1, 11))) {
    SCOPED_TRACE("power fails at change " + std::to_string(at) + " of " + std::to_string(changes));
    Lockstep stores(at % 4);
    EXPECT_NE(error_of([&] { stores.run(at); }), "no error");
    stores.check();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_F(StoreVersions, AreReadWithoutTheStoreBeingOwned) {
  make_two_versions();
  const auto owner = open(11);
  for (const std::uint64_t version : {10u, 11u}) {
    const StoreReader reader(*engine_, store_path, version);
    EXPECT_EQ(reader.note(), "note " + std::to_string(version));
    for (int i = 0; i < num_versioned; ++i) {
      std::vector<std::byte> bytes(owner->tile(i).bytes);
      reader.read(static_cast<std::size_t>(i), bytes);
      const Buffer expected = tile_bytes(*owner, i, version);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.data()));
    }
  }
  EXPECT_THAT(error_of([&] { StoreReader(*engine_, store_path, 12); }), HasSubstr("no version 12"));
  const StoreReader reader(*engine_, store_path, 10);
  write_tile(*owner, 2, 12);
  std::vector<std::byte> bytes(owner->tile(2).bytes);
  EXPECT_THAT(error_of([&] { reader.read(2, bytes); }),
              AllOf(HasSubstr("master/block.2 tile 0"), HasSubstr("damaged")));
}

TEST_F(StoreVersions, GoWithAStoreThatIsDiscarded) {
  make_two_versions();
  open(11)->discard();
  EXPECT_THAT(files().list("/a"), IsEmpty());
  EXPECT_THAT(files().list("/b"), IsEmpty());
}

TEST_F(StoreVersions, AreRemovedByNameUnlessInUse) {
  const auto used = create(*engine_, "run-one");
  create(*engine_, "run-two");
  files().make_directory("/a/run-mine");
  files().write_file("/a/run-mine/letter", {});
  EXPECT_GT(named_store_bytes(files(), "/a", "run-two"), 0u);
  EXPECT_FALSE(remove_named_stores(files(), "/a", "run-"));
  EXPECT_THAT(files().list("/a"), ElementsAre("run-mine", "run-one"));
  EXPECT_TRUE(remove_named_stores(files(), "/b", "run-two"));
  EXPECT_THAT(files().list("/b"), ElementsAre("run-one"));
  EXPECT_TRUE(remove_named_stores(files(), "/nowhere", "run"));
}

TEST_F(StoreVersions, AreOfSomeTilesOnlyInAJoinedStore) {
  const auto spec = small_spec(StoreKind::scratch, {"/a", "/b"}, 2);
  const auto joined = [&](std::unique_ptr<ShardStore> versioned) {
    return std::make_unique<JoinedStore>(std::move(versioned),
                                         ShardStore::create(*engine_, spec, {}),
                                         std::vector{true, false, true, true, false, true, true});
  };
  {
    const auto store = joined(create(*engine_));
    ASSERT_EQ(store->num_tiles(), num_versioned + 2);
    EXPECT_EQ(store->find(store->tile(3).name), 3);
    for (int i = 0; i < store->num_tiles(); ++i) write_tile(*store, i, 1);
    store->commit(1, "note 1");
    for (int i = 0; i < store->num_tiles(); ++i) write_tile(*store, i, 2);
    EXPECT_TRUE(holds(*store, 1, 2));
    EXPECT_TRUE(holds(*store, 2, 2));
    EXPECT_EQ(store->committed_version(), 1u);
  }
  EXPECT_THAT(files().list("/a"), ElementsAre("run"));
  const auto store = joined(open(1));
  for (const int tile : {0, 2, 3, 5, 6}) EXPECT_TRUE(holds(*store, tile, 1)) << tile;
}

}  // namespace
}  // namespace strata::testing
