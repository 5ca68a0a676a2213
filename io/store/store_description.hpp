#pragma once
// A StoreDescription is what store.json says: a store's id, kind, drives and the address of every
// tile. A value; it never changes once the store is made.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/io/store/shard_store.hpp"

namespace strata {

inline constexpr std::size_t store_tiles_max = std::size_t{1} << 20;
inline constexpr std::size_t store_drives_max = 64;
inline constexpr std::size_t store_name_bytes_max = 255;
inline constexpr std::uint64_t store_drive_bytes_max = std::uint64_t{1} << 60;
inline constexpr std::uint64_t store_alignment_min = 4096;
inline constexpr std::uint64_t store_alignment_max = 1 << 20;

struct TileExtent {
  StoreTile tile;
  std::array<std::uint64_t, 2> offsets{};  // of its places; a scratch store has one
};

struct StoreDrive {
  std::string directory;    // absolute; holds the drive's part
  std::uint64_t bytes = 0;  // of its `tiles`
};

struct StoreDescription {
  std::string id;  // 32 hex digits, random: ties the parts together
  StoreKind kind = StoreKind::scratch;
  Checksums checksums = Checksums::off;
  std::string name;
  std::uint64_t alignment = store_alignment_min;
  std::vector<StoreDrive> drives;
  std::vector<TileExtent> tiles;

  int num_places() const { return kind == StoreKind::versioned ? 2 : 1; }
  std::uint64_t padded_bytes(std::size_t tile) const;
  // The directory of a drive's part. Drives that share a directory get names of their own.
  std::string part_path(std::size_t drive) const;
};

// What a store of `spec` is, its tiles not yet laid out. Throws ConfigError when `spec` cannot be a
// store: a tile without a name or bytes, two of one name, a drive that is not there.
StoreDescription describe_store(const StoreSpec& spec, Checksums checksums);

// Gives every place of every tile its address: in order, one drive after another.
void lay_out(StoreDescription& store, std::uint64_t alignment);

// Throws ConfigError unless `name` can be the directory of a versioned store.
void check_store_name(const std::string& name);

std::string store_kind_name(StoreKind kind);

}  // namespace strata
