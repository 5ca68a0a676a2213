#include "io/store/store_description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <unordered_set>

#include "io/store/dead_stores.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

std::string random_id() {
  std::random_device random;
  std::string id;
  for (int word = 0; word < 4; ++word) id += fmt::format("{:08x}", random());
  return id;
}

bool is_plain(const std::string& name) {
  return !name.empty() && name.size() <= store_name_bytes_max &&
         std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

void check_tile(const StoreTile& tile, std::size_t num_drives) {
  if (!is_plain(tile.name))
    throw ConfigError(fmt::format("a store's tile must have a name of 1 to {} printable bytes",
                                  store_name_bytes_max));
  if (tile.bytes == 0 || tile.bytes > store_drive_bytes_max / 4)
    throw ConfigError(fmt::format("tile '{}' of {} bytes cannot be stored", tile.name, tile.bytes));
  if (tile.drive < 0 || static_cast<std::size_t>(tile.drive) >= num_drives)
    throw ConfigError(
        fmt::format("tile '{}' is to be on drive {} of {}", tile.name, tile.drive, num_drives));
}

void check_spec(const StoreSpec& spec) {
  if (spec.tiles.size() > store_tiles_max)
    throw ConfigError(fmt::format("a store holds at most {} tiles, not {}: use larger tiles",
                                  store_tiles_max, spec.tiles.size()));
  if (spec.directories.size() > store_drives_max)
    throw ConfigError(fmt::format("a store spans at most {} drives, not {}", store_drives_max,
                                  spec.directories.size()));
  std::unordered_set<std::string> names;
  for (const StoreTile& tile : spec.tiles) {
    check_tile(tile, spec.directories.size());
    if (!names.insert(tile.name).second)
      throw ConfigError(fmt::format("two tiles of a store are named '{}'", tile.name));
  }
}

std::string absolute(const std::string& directory) {
  auto path = std::filesystem::absolute(directory).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void place(TileExtent& extent, StoreDescription& store, std::size_t index) {
  StoreDrive& drive = store.drives[static_cast<std::size_t>(extent.tile.drive)];
  const std::uint64_t padded = store.padded_bytes(index);
  for (int place = 0; place < store.num_places(); ++place) {
    extent.offsets[static_cast<std::size_t>(place)] = drive.bytes;
    drive.bytes += padded;
  }
  if (drive.bytes > store_drive_bytes_max)
    throw ConfigError(fmt::format("the tiles for {} have more bytes than any file ({})",
                                  drive.directory, store_drive_bytes_max));
}

}  // namespace

std::uint64_t StoreDescription::padded_bytes(std::size_t tile) const {
  return align_up(tiles[tile].tile.bytes, alignment);
}

std::string StoreDescription::part_path(std::size_t drive) const {
  const auto& directory = drives[drive].directory;
  const auto sharers = drives.begin() + static_cast<std::ptrdiff_t>(drive);
  const bool shared =
      std::any_of(drives.begin(), sharers, [&](const auto& d) { return d.directory == directory; });
  return directory + "/" + name + (shared ? fmt::format("-drive{}", drive) : "");
}

StoreDescription describe_store(const StoreSpec& spec, Checksums checksums) {
  check_spec(spec);
  StoreDescription store;
  store.id = random_id();
  store.kind = spec.kind;
  store.checksums = spec.kind == StoreKind::versioned ? Checksums::on : checksums;
  store.name = spec.kind == StoreKind::versioned ? spec.name : scratch_name(store.id.substr(0, 8));
  for (const std::string& directory : spec.directories)
    store.drives.push_back({absolute(directory), 0});
  for (const StoreTile& tile : spec.tiles) store.tiles.push_back({tile, {}});
  return store;
}

void lay_out(StoreDescription& store, std::uint64_t alignment) {
  store.alignment = alignment;
  for (StoreDrive& drive : store.drives) drive.bytes = 0;
  for (std::size_t i = 0; i < store.tiles.size(); ++i) place(store.tiles[i], store, i);
}

void check_store_name(const std::string& name) {
  const bool fits = is_plain(name) && name.size() <= 200 && name != "." && name != ".." &&
                    name.find('/') == std::string::npos;
  if (!fits)
    throw ConfigError(fmt::format("'{}' cannot name a store: it must be a directory's name", name));
  if (is_scratch_name(name))
    throw ConfigError(fmt::format(
        "'{}' cannot name a versioned store: names that begin like this are scratch, which the "
        "next run removes",
        name));
}

std::string store_kind_name(StoreKind kind) {
  return kind == StoreKind::versioned ? "versioned" : "scratch";
}

}  // namespace strata
