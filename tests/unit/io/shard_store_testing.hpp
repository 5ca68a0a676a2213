#pragma once
// What the store's suites share: small stores, tiles with known bytes, and the text of an error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "contract/io/io_testing.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata::testing {

inline constexpr StoreOptions verified = {.checksums = Checksums::on, .verify = Verify::reads};

// The text of the error of type `Failure` that an action throws.
template <typename Failure = Error, typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Failure& error) {
    return error.what();
  }
  return "no error";
}

// Tiles of 1 to 3 sectors and a bit, in turn over the drives.
inline StoreSpec small_spec(StoreKind kind, std::vector<std::string> directories, int num_tiles) {
  StoreSpec spec{.kind = kind, .name = "run", .directories = std::move(directories), .tiles = {}};
  const int num_drives = static_cast<int>(spec.directories.size());
  for (int i = 0; i < num_tiles; ++i) {
    const char* role = i % 2 == 0 ? "master" : "moment1";
    spec.tiles.push_back({.name = std::string(role) + "/block." + std::to_string(i) + " tile 0",
                          .bytes = 4096 * static_cast<std::uint64_t>(i % 3) + 100,
                          .drive = i % num_drives});
  }
  return spec;
}

// The bytes that a test means by `stamp` in a tile; those past the tile's own are zeros.
inline Buffer tile_bytes(const ShardStore& store, int tile, std::uint64_t stamp) {
  Buffer buffer(store.padded_bytes(tile));
  PhiloxStream random(stamp, static_cast<std::uint64_t>(tile));
  const auto own = buffer.span().first(store.tile(tile).bytes);
  for (std::byte& one : own) one = static_cast<std::byte>(random.next_u32());
  return buffer;
}

inline void write_tile(ShardStore& store, int tile, std::uint64_t stamp) {
  store.transfer(IoOp::write, tile, tile_bytes(store, tile, stamp).span());
}

inline ::testing::AssertionResult holds(ShardStore& store, int tile, std::uint64_t stamp) {
  const Buffer got(store.padded_bytes(tile));
  store.transfer(IoOp::read, tile, got.span());
  const Buffer expected = tile_bytes(store, tile, stamp);
  const auto bytes = store.tile(tile).bytes;
  if (std::equal(got.data(), got.data() + bytes, expected.data()))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "tile " << tile << " has not the bytes of " << stamp;
}

}  // namespace strata::testing
