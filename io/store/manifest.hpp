#pragma once
// A Manifest is one committed version of a store: which place of each tile belongs to it, and the
// checksum of the bytes there. Binary, little-endian (docs/design/storage.md). A value.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace strata {

struct TileRecord {
  static constexpr std::uint8_t never_written = 255;

  std::uint8_t place = never_written;
  std::uint64_t checksum = 0;

  bool written() const { return place != never_written; }
};

struct Manifest {
  static constexpr std::size_t note_bytes_max = std::size_t{1} << 20;

  std::optional<std::uint64_t> version;  // none before the first commit
  std::string note;
  std::uint64_t description_checksum = 0;  // of the first drive's store.json
  std::vector<TileRecord> tiles;
};

std::vector<std::byte> encode(const Manifest& manifest);
// Throws FormatError naming `path` and what is wrong.
Manifest decode_manifest(std::span<const std::byte> bytes, const std::string& path);

// What a manifest of so many tiles may have at most.
std::uint64_t manifest_bytes_max(std::size_t num_tiles);

// `bytes` with the checksum at their end made right. For tests, which damage what is before it.
void seal_manifest(std::vector<std::byte>& bytes);

}  // namespace strata
