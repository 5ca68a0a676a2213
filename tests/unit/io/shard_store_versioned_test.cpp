// Versioned stores: commits, reopening, and every way in which one can be damaged.

#include <algorithm>

#include "support/sanitizers.hpp"
#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class VersionedStore : public ::testing::Test {
 protected:
  static constexpr int num_tiles = 6;

  std::unique_ptr<ShardStore> create() {
    return ShardStore::create(*engine_, small_spec(StoreKind::versioned, {"/a", "/b"}, num_tiles),
                              verified);
  }
  std::unique_ptr<ShardStore> open(const StoreOptions& options = verified) {
    return ShardStore::open(*engine_, "/a/run", options);
  }
  void write_all(ShardStore& store, std::uint64_t stamp) {
    for (int i = 0; i < num_tiles; ++i) write_tile(store, i, stamp);
  }
  // A store whose tiles have the bytes of 1, as version 10.
  void make_committed() {
    const auto store = create();
    write_all(*store, 1);
    store->commit(10, "step 10");
  }
  FileSystem& files() { return engine_->file_system(); }
  void change(const std::string& path, std::size_t at, std::byte by = std::byte{0x01}) {
    auto bytes = files().read_file(path, 1 << 20);
    ASSERT_LT(at, bytes.size());
    bytes[at] ^= by;
    files().write_file(path, bytes);
  }

  std::unique_ptr<SimEngine> engine_ = make_sim_engine({.seed = 3});
};

TEST_F(VersionedStore, OpensAtItsLastCommittedVersion) {
  make_committed();
  const auto store = open();
  EXPECT_EQ(store->committed_version(), 10u);
  EXPECT_EQ(store->committed_note(), "step 10");
  EXPECT_EQ(store->num_tiles(), num_tiles);
  for (int i = 0; i < num_tiles; ++i) EXPECT_TRUE(holds(*store, i, 1));
}

TEST_F(VersionedStore, OpensWithoutAVersionBeforeTheFirstCommit) {
  write_all(*create(), 1);
  const auto store = open();
  EXPECT_EQ(store->committed_version(), std::nullopt);
  EXPECT_EQ(store->committed_note(), "");
  EXPECT_THAT(error_of([&] { (void)holds(*store, 0, 1); }), HasSubstr("nothing was ever written"));
}

TEST_F(VersionedStore, ForgetsWhatWasWrittenAfterTheLastCommit) {
  make_committed();
  {
    const auto store = open();
    write_all(*store, 2);
    write_tile(*store, 0, 3);
    EXPECT_TRUE(holds(*store, 0, 3));
    EXPECT_TRUE(holds(*store, 1, 2));
  }
  const auto store = open();
  for (int i = 0; i < num_tiles; ++i) EXPECT_TRUE(holds(*store, i, 1));
}

TEST_F(VersionedStore, KeepsTilesThatWereNotWrittenSinceAndTakesTheLastOfSeveralWrites) {
  make_committed();
  {
    const auto store = open();
    write_tile(*store, 2, 2);
    write_tile(*store, 2, 3);
    store->commit(11, "");
    write_tile(*store, 2, 4);
    write_tile(*store, 4, 4);
    store->commit(12, "later");
  }
  const auto store = open();
  EXPECT_EQ(store->committed_version(), 12u);
  for (int i = 0; i < num_tiles; ++i) EXPECT_TRUE(holds(*store, i, i == 2 || i == 4 ? 4 : 1));
}

TEST_F(VersionedStore, FlushesOnlyDrivesWrittenToSinceTheLastCommit) {
  make_committed();
  const auto store = open();
  const auto changes_of_commit = [&](std::uint64_t version) {
    const auto before = engine_->changes();
    store->commit(version, "");
    return engine_->changes() - before;
  };
  const auto none = changes_of_commit(11);
  write_tile(*store, 0, 2);  // drive 0
  EXPECT_EQ(changes_of_commit(12), none + 1);
  write_all(*store, 2);
  EXPECT_EQ(changes_of_commit(13), none + 2);
}

TEST_F(VersionedStore, RefusesAVersionThatIsNotGreaterThanTheLast) {
  make_committed();
  const auto store = open();
  EXPECT_THAT(error_of([&] { store->commit(10, ""); }),
              AllOf(HasSubstr("version 10"), HasSubstr("committed already")));
  EXPECT_THAT(error_of([&] { store->commit(11, std::string(2 << 20, 'x')); }), HasSubstr("note"));
  EXPECT_EQ(store->committed_version(), 10u);
}

TEST_F(VersionedStore, IsForOneOwnerAtATime) {
  make_committed();
  const auto store = open();
  EXPECT_THAT(error_of<ConfigError>([&] { open(); }), HasSubstr("in use"));
}

TEST_F(VersionedStore, IsNotMadeTwice) {
  make_committed();
  EXPECT_THAT(error_of<ConfigError>([&] { create(); }),
              AllOf(HasSubstr("/a/run"), HasSubstr("already")));
  EXPECT_EQ(open()->committed_version(), 10u);
}

TEST_F(VersionedStore, NeedsANameThatIsADirectorysAndNotScratch) {
  const auto refusal = [&](const std::string& name) {
    StoreSpec spec = small_spec(StoreKind::versioned, {"/a"}, 1);
    spec.name = name;
    return error_of<ConfigError>([&] { ShardStore::create(*engine_, spec, {}); });
  };
  for (const char* name : {"", ".", "..", "a/b", "a\n"})
    EXPECT_THAT(refusal(name), HasSubstr("cannot name a store"));
  EXPECT_THAT(refusal("strata-scratch-1-1"), HasSubstr("scratch"));
}

TEST_F(VersionedStore, SaysWhatIsNoStore) {
  EXPECT_THAT(error_of([&] { open(); }), AllOf(HasSubstr("/a/run"), HasSubstr("no store")));
  const auto scratch = ShardStore::create(*engine_, small_spec(StoreKind::scratch, {"/a"}, 1), {});
  EXPECT_THAT(error_of<ConfigError>([&] { ShardStore::open(*engine_, scratch->path(), {}); }),
              HasSubstr("in use"));
}

TEST_F(VersionedStore, OpensByItsFirstPartOnly) {
  make_committed();
  EXPECT_THAT(error_of([&] { ShardStore::open(*engine_, "/b/run", {}); }),
              AllOf(HasSubstr("part of drive 1"), HasSubstr("/a/run")));
}

TEST_F(VersionedStore, MissesAPartOfADrive) {
  make_committed();
  for (const auto& name : files().list("/b/run")) files().remove("/b/run/" + name);
  files().remove("/b/run");
  EXPECT_THAT(error_of([&] { open(); }), AllOf(HasSubstr("/b/run"), HasSubstr("missing")));
}

TEST_F(VersionedStore, RefusesAPartOfAnotherStore) {
  make_committed();
  StoreSpec other = small_spec(StoreKind::versioned, {"/c", "/d"}, num_tiles);
  ShardStore::create(*engine_, other, {});
  files().write_file("/b/run/store.json", files().read_file("/d/run/store.json", 1 << 20));
  EXPECT_THAT(error_of([&] { open(); }),
              AllOf(HasSubstr("/b/run/store.json"), HasSubstr("not of store")));
}

TEST_F(VersionedStore, NamesEachFileThatIsMissing) {
  make_committed();
  for (const char* path : {"/a/run/store.json", "/a/run/manifest.0", "/a/run/manifest.1",
                           "/b/run/store.json", "/a/run/tiles", "/b/run/tiles"}) {
    files().rename(path, std::string(path) + ".away");
    EXPECT_THAT(error_of([&] { open(); }), AnyOf(HasSubstr(path), HasSubstr("has no store.json")));
    files().rename(std::string(path) + ".away", path);
  }
  EXPECT_EQ(open()->committed_version(), 10u);
}

TEST_F(VersionedStore, FindsAByteFlippedAnywhereInItsSmallFiles) {
  make_committed();
  for (const std::string path :
       {"/a/run/store.json", "/b/run/store.json", "/a/run/manifest.0", "/a/run/manifest.1"}) {
    const auto bytes = files().file_bytes(path);
    for (std::uint64_t at = 0; at < bytes; at += static_cast<std::uint64_t>(rounds(1, 13))) {
      change(path, at);
      EXPECT_THAT(error_of([&] { open({}); }), HasSubstr(path)) << path << " byte " << at;
      change(path, at);
    }
  }
  EXPECT_EQ(open()->committed_version(), 10u);
}

TEST_F(VersionedStore, FindsSmallFilesThatWereCutShort) {
  make_committed();
  for (const std::string path :
       {"/a/run/store.json", "/b/run/store.json", "/a/run/manifest.0", "/a/run/manifest.1"}) {
    const auto whole = files().read_file(path, 1 << 20);
    for (std::size_t bytes = 0; bytes < whole.size();
         bytes += static_cast<std::size_t>(rounds(3, 29))) {
      files().write_file(path, std::span(whole).first(bytes));
      EXPECT_THAT(error_of([&] { open({}); }), HasSubstr(path)) << path << " of " << bytes;
    }
    files().write_file(path, whole);
  }
}

TEST_F(VersionedStore, FindsAByteFlippedInACommittedTileOnOpenAndOnRead) {
  make_committed();
  const FileId file = engine_->open("/b/run/tiles", OpenMode::read_write_create, Caching::buffered);
  Buffer bytes(engine_->info(file).bytes);
  ASSERT_TRUE(run(*engine_, IoOp::read, file, 0, bytes.span()).ok());
  // Tile 1 is the first of drive 1, 4196 bytes in two sectors; its first place is at 0.
  bytes.data()[4100] ^= std::byte{0x80};
  ASSERT_TRUE(run(*engine_, IoOp::write, file, 0, bytes.span()).ok());
  engine_->close(file);
  const auto names_it = AllOf(HasSubstr("moment1/block.1 tile 0"), HasSubstr("/b/run/tiles"),
                              HasSubstr("offset 0"), HasSubstr("checksum"));
  EXPECT_THAT(error_of([&] { open(); }), AllOf(names_it, HasSubstr("1 of 6 tiles")));
  // Unverified it opens; a verified read is another matter.
  const auto store = open({});
  EXPECT_FALSE(holds(*store, 1, 1));
}

TEST_F(VersionedStore, RefusesATilesFileThatWasCutShort) {
  make_committed();
  const auto bytes = files().file_bytes("/b/run/tiles");
  const auto whole = files().read_file("/b/run/tiles", bytes);
  files().write_file("/b/run/tiles", std::span(whole).first(bytes - 4096));
  EXPECT_THAT(error_of([&] { open(); }), AllOf(HasSubstr("/b/run/tiles"), HasSubstr("should")));
}

TEST_F(VersionedStore, RefusesToCommitATileWhoseLastWriteFailed) {
  make_committed();
  auto failing = make_sim_engine({.faults = {{6, EIO}}});
  engine_ = std::move(failing);
  const auto store = create();  // 4 transfers of the probes
  write_tile(*store, 0, 1);
  store->commit(1, "");
  ASSERT_NE(error_of([&] {
              write_tile(*store, 0, 2);
              write_tile(*store, 2, 2);
            }),
            "no error");
  EXPECT_THAT(error_of([&] { store->commit(2, ""); }), HasSubstr("write it again"));
  EXPECT_EQ(store->committed_version(), 1u);
  write_tile(*store, 0, 3);
  write_tile(*store, 2, 3);
  store->commit(2, "");
  EXPECT_TRUE(holds(*store, 0, 3));
}

}  // namespace
}  // namespace strata::testing
