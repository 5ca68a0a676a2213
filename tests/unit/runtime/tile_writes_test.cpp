#include "runtime/tile_writes.hpp"

#include <algorithm>

#include "unit/io/shard_store_testing.hpp"

namespace strata::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t sector = 4096;

// A slow drive that reorders, a store of ten tiles on it, and memory for two large ones.
struct Site {
  Site()
      : engine(make_sim_engine({.latency_us_max = 300})),
        store(ShardStore::create(*engine, small_spec(StoreKind::scratch, {"/a"}, 10), verified)),
        memory(6 * sector),
        writes(store.get(), memory.span(), sector) {}

  void write(int tile, std::uint64_t stamp) {
    const std::span<std::byte> taken = writes.take(store->padded_bytes(tile));
    const Buffer bytes = tile_bytes(*store, tile, stamp);
    std::ranges::copy(bytes.span(), taken.begin());
    writes.start(tile, taken, "tile " + std::to_string(tile));
  }

  std::unique_ptr<SimEngine> engine;
  std::unique_ptr<ShardStore> store;
  Buffer memory;
  TileWrites writes;
};

TEST(TileWrites, NeverTouchMemoryThatIsOnItsWay) {
  Site site;
  for (const std::uint64_t stamp : {1, 2, 3}) {
    for (int tile = 0; tile < 10; ++tile) site.write(tile, stamp);
    site.writes.finish();
    for (int tile = 0; tile < 10; ++tile) EXPECT_TRUE(holds(*site.store, tile, stamp));
  }
}

TEST(TileWrites, MayShareTheirBytes) {
  Site site;
  const std::span<std::byte> zeros = site.writes.take(3 * sector);
  std::ranges::fill(zeros, std::byte{0});
  for (int tile = 0; tile < 10; ++tile)
    site.writes.start(tile, zeros.first(site.store->padded_bytes(tile)), "zeros");
  site.writes.finish();
  for (int tile = 0; tile < 10; ++tile) {
    const Buffer read(site.store->padded_bytes(tile));
    site.store->transfer(IoOp::read, tile, read.span());
    EXPECT_TRUE(std::ranges::all_of(read.span().first(site.store->tile(tile).bytes),
                                    [](std::byte byte) { return byte == std::byte{0}; }));
  }
}

TEST(TileWrites, NameTheOneThatFailedToWhoeverWaitsForIt) {
  Site site;
  site.engine->power_fails_at(site.engine->changes() + 3);
  const std::string error = error_of([&] {
    for (int tile = 0; tile < 10; ++tile) site.write(tile, 1);
    site.writes.finish();
  });
  EXPECT_THAT(error, AllOf(HasSubstr("cannot store tile "), HasSubstr("/a")));
}

}  // namespace
}  // namespace strata::testing
