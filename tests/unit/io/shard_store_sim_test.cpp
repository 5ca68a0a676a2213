// Stores on a simulated disk: what a store does when drives fail or lie.

#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<ShardStore> make_scratch(IoEngine& engine, const StoreOptions& options) {
  return ShardStore::create(engine, small_spec(StoreKind::scratch, {"/a", "/b"}, 6), options);
}

// Overwrites a byte of a file behind the store's back.
void flip(IoEngine& engine, const std::string& path, std::uint64_t at) {
  const FileId file = engine.open(path, OpenMode::read_write_create, Caching::buffered);
  Buffer byte(1);
  ASSERT_TRUE(run(engine, IoOp::read, file, at, byte.span()).ok());
  *byte.data() ^= std::byte{0x10};
  ASSERT_TRUE(run(engine, IoOp::write, file, at, byte.span()).ok());
  engine.close(file);
}

TEST(ShardStoreOnASimulatedDisk, NeedsNoDirectoryAndLeavesNothing) {
  const auto engine = make_sim_engine({});
  auto store = make_scratch(*engine, {});
  for (int i = 0; i < 6; ++i) write_tile(*store, i, 3);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(holds(*store, i, 3));
  store.reset();
  EXPECT_THAT(engine->file_system().list("/a"), ::testing::IsEmpty());
  EXPECT_THAT(engine->file_system().list("/b"), ::testing::IsEmpty());
}

TEST(ShardStoreOnASimulatedDisk, ReclaimsScratchAfterAPowerCut) {
  const auto engine = make_sim_engine({.seed = 5});
  {
    const auto store = make_scratch(*engine, {});
    engine->file_system().sync_directory("/a");
    engine->file_system().sync_directory(store->path());
  }
  const auto store = make_scratch(*engine, {});
  EXPECT_EQ(engine->file_system().list("/a").size(), 1u);
}

TEST(ShardStoreOnASimulatedDisk, RefusesMoreThanItsCapacity) {
  const auto engine = make_sim_engine({.capacity_bytes = 64 * KiB});
  StoreSpec spec;
  spec.directories = {"/nowhere"};
  spec.tiles = {{"a", 128 * KiB, 0}};
  EXPECT_THAT(error_of<ConfigError>([&] { ShardStore::create(*engine, spec, {}); }),
              AllOf(HasSubstr("128 KiB"), HasSubstr("64.0 KiB"), HasSubstr("free"),
                    HasSubstr("nvme fractions")));
}

TEST(ShardStoreOnASimulatedDisk, FailsTheProbeOfADriveThatFails) {
  const auto engine = make_sim_engine({.faults = {{0, EIO}}});
  EXPECT_THAT(error_of([&] { make_scratch(*engine, {}); }), HasSubstr("cannot write"));
  EXPECT_THAT(engine->file_system().list("/a"), ::testing::IsEmpty());
}

TEST(ShardStoreOnASimulatedDisk, RepeatsNothingOfAScratchTileThatItDoesNotVerify) {
  const auto engine = make_sim_engine({});
  const auto store = make_scratch(*engine, {.checksums = Checksums::on});
  write_tile(*store, 0, 1);
  flip(*engine, store->path() + "/tiles", 7);
  EXPECT_FALSE(holds(*store, 0, 1));
}

TEST(ShardStoreOnASimulatedDisk, NamesTileFileAndOffsetOfAFlippedByteOnRead) {
  const auto engine = make_sim_engine({});
  const auto store = make_scratch(*engine, verified);
  for (int i = 0; i < 6; ++i) write_tile(*store, i, 1);
  flip(*engine, store->path() + "/tiles", 4096 + 11);
  EXPECT_TRUE(holds(*store, 0, 1));
  EXPECT_THAT(error_of([&] { (void)holds(*store, 2, 1); }),
              AllOf(HasSubstr("master/block.2 tile 0"), HasSubstr(store->path() + "/tiles"),
                    HasSubstr("offset 4096"), HasSubstr("checksum")));
  write_tile(*store, 2, 2);
  EXPECT_TRUE(holds(*store, 2, 2));
}

TEST(ShardStoreOnASimulatedDisk, DoesNotCheckTheBytesPastATilesOwn) {
  const auto engine = make_sim_engine({});
  const auto store = make_scratch(*engine, verified);
  write_tile(*store, 0, 1);
  flip(*engine, store->path() + "/tiles", 4000);
  EXPECT_TRUE(holds(*store, 0, 1));
}

TEST(ShardStoreOnASimulatedDisk, RefusesToReadATileNeverWrittenWhenItKeepsChecksums) {
  const auto engine = make_sim_engine({});
  const auto store = make_scratch(*engine, {.checksums = Checksums::on});
  EXPECT_THAT(error_of([&] { (void)holds(*store, 1, 0); }),
              AllOf(HasSubstr("moment1/block.1 tile 0"), HasSubstr("nothing was ever written")));
}

TEST(ShardStoreOnASimulatedDisk, GivesAnythingForAScratchTileNeverWrittenWithoutChecksums) {
  const auto engine = make_sim_engine({});
  const auto store = make_scratch(*engine, {});
  EXPECT_FALSE(holds(*store, 1, 0));
}

TEST(ShardStoreOnASimulatedDisk, RefusesToReadATileWhoseLastWriteFailed) {
  // 4 probe transfers, then the write.
  const auto engine = make_sim_engine({.faults = {{4, EIO}}});
  const auto store = make_scratch(*engine, verified);
  EXPECT_THAT(error_of([&] { write_tile(*store, 0, 1); }), HasSubstr("Input/output error"));
  EXPECT_THAT(error_of([&] { (void)holds(*store, 0, 1); }), HasSubstr("last write failed"));
  write_tile(*store, 0, 2);
  EXPECT_TRUE(holds(*store, 0, 2));
}

}  // namespace
}  // namespace strata::testing
