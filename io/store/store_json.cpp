#include "io/store/store_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "io/store/json_seal.hpp"
#include "io/store/store_json_reader.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using Json = nlohmann::ordered_json;

constexpr int json_format_version = 1;

std::string row(const TileExtent& extent, int num_places) {
  Json offsets = Json::array();
  for (int place = 0; place < num_places; ++place)
    offsets.push_back(extent.offsets[static_cast<std::size_t>(place)]);
  const Json tile = {{"name", extent.tile.name},
                     {"bytes", extent.tile.bytes},
                     {"drive", extent.tile.drive},
                     {"offsets", offsets}};
  return tile.dump();
}

std::string head(const StoreDescription& store, std::size_t part) {
  Json drives = Json::array();
  for (const StoreDrive& drive : store.drives)
    drives.push_back({{"directory", drive.directory}, {"bytes", drive.bytes}});
  const Json json = {{"format", "strata store"},
                     {"format_version", json_format_version},
                     {"id", store.id},
                     {"kind", store_kind_name(store.kind)},
                     {"checksums", store.checksums == Checksums::on},
                     {"name", store.name},
                     {"part", part},
                     {"alignment", store.alignment},
                     {"drives", drives}};
  return json.dump(1);
}

std::string body(const StoreDescription& store, std::size_t part) {
  std::string text = head(store, part);
  text.resize(text.size() - 2);  // the end of the object
  text += ",\n \"tiles\": [";
  for (const TileExtent& extent : store.tiles) {
    text += &extent == store.tiles.data() ? "\n  " : ",\n  ";
    text += row(extent, store.num_places());
  }
  return text + "\n ]";
}

StoreKind kind_of(const StoreJsonReader& json) {
  const std::string name = json.text("kind");
  if (name == "versioned") return StoreKind::versioned;
  if (name == "scratch") return StoreKind::scratch;
  json.fail(fmt::format("unknown kind '{}'", name));
}

void check_id(const StoreJsonReader& json, const std::string& id) {
  const bool is_hex = std::ranges::all_of(
      id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (id.size() != 32 || !is_hex) json.fail("the id is not 32 hex digits");
}

std::uint64_t alignment_of(const StoreJsonReader& json) {
  const std::uint64_t alignment =
      json.number("alignment", store_alignment_min, store_alignment_max);
  if ((alignment & (alignment - 1)) != 0) json.fail("the alignment is no power of two");
  return alignment;
}

std::vector<StoreDrive> drives_of(const StoreJsonReader& json) {
  std::vector<StoreDrive> drives;
  for (const StoreJsonReader& drive : json.rows("drives", store_drives_max)) {
    drives.push_back({drive.text("directory"), drive.number("bytes", 0, store_drive_bytes_max)});
  }
  return drives;
}

TileExtent tile_of(const StoreJsonReader& json, const StoreDescription& store) {
  TileExtent extent;
  extent.tile.name = json.text("name");
  extent.tile.bytes = json.number("bytes", 1, store_drive_bytes_max / 4);
  if (store.drives.empty()) json.fail("there is no drive for it");
  extent.tile.drive = static_cast<int>(json.number("drive", 0, store.drives.size() - 1));
  const auto offsets = json.numbers("offsets");
  if (offsets.size() != static_cast<std::size_t>(store.num_places()))
    json.fail(fmt::format("it has {} offsets; a tile of a {} store has {}", offsets.size(),
                          store_kind_name(store.kind), store.num_places()));
  std::ranges::copy(offsets, extent.offsets.begin());
  return extent;
}

struct Extent {
  int drive = 0;
  std::uint64_t begin = 0, end = 0;
  std::size_t tile = 0;
  auto operator<=>(const Extent&) const = default;
};

// Every place of every tile, in the order of the drives.
std::vector<Extent> extents_of(const StoreJsonReader& json, const StoreDescription& store) {
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < store.tiles.size(); ++i) {
    const auto& [tile, offsets] = store.tiles[i];
    const std::uint64_t drive_bytes = store.drives[static_cast<std::size_t>(tile.drive)].bytes;
    for (int place = 0; place < store.num_places(); ++place) {
      const std::uint64_t at = offsets[static_cast<std::size_t>(place)];
      if (at % store.alignment != 0 || at > drive_bytes || store.padded_bytes(i) > drive_bytes - at)
        json.fail(fmt::format("tile '{}' at offset {} is not within the {} bytes of drive {}",
                              tile.name, at, drive_bytes, tile.drive));
      extents.push_back({tile.drive, at, at + store.padded_bytes(i), i});
    }
  }
  std::ranges::sort(extents);
  return extents;
}

void check_extents(const StoreJsonReader& json, const StoreDescription& store) {
  const auto extents = extents_of(json, store);
  for (std::size_t i = 1; i < extents.size(); ++i) {
    const Extent &a = extents[i - 1], &b = extents[i];
    if (a.drive == b.drive && b.begin < a.end)
      json.fail(fmt::format("tiles '{}' and '{}' overlap at offset {} of drive {}",
                            store.tiles[a.tile].tile.name, store.tiles[b.tile].tile.name, b.begin,
                            b.drive));
  }
}

void check_names(const StoreJsonReader& json, const StoreDescription& store) {
  std::unordered_set<std::string_view> names;
  for (const TileExtent& extent : store.tiles) {
    if (!names.insert(extent.tile.name).second)
      json.fail(fmt::format("two tiles are named '{}'", extent.tile.name));
  }
}

PartDescription read(const StoreJsonReader& json) {
  if (json.text("format") != "strata store") json.fail("it does not describe a store");
  if (const auto version = json.number("format_version", 0, ~0u); version != json_format_version)
    json.fail(fmt::format("its format is version {}; this program knows version {}", version,
                          json_format_version));
  PartDescription part;
  StoreDescription& store = part.store;
  store.kind = kind_of(json);
  store.id = json.text("id");
  check_id(json, store.id);
  store.checksums = json.flag("checksums") ? Checksums::on : Checksums::off;
  store.name = json.text("name");
  store.alignment = alignment_of(json);
  store.drives = drives_of(json);
  part.part = json.number("part", 0, std::max<std::size_t>(store.drives.size(), 1) - 1);
  for (const StoreJsonReader& row : json.rows("tiles", store_tiles_max))
    store.tiles.push_back(tile_of(row, store));
  return part;
}

}  // namespace

std::string store_json(const StoreDescription& store, std::size_t part) {
  try {
    return with_json_seal(body(store, part));
  } catch (const Json::type_error&) {
    throw ConfigError("the directories and names of a store must be UTF-8");
  }
}

PartDescription parse_store_json(std::string_view text, const std::string& path) {
  const StoreJsonReader json = StoreJsonReader::parse(text, path);
  PartDescription part = read(json);
  check_names(json, part.store);
  check_extents(json, part.store);
  if (!has_json_seal(text)) json.fail("its checksum does not match its contents");
  // Unknown and repeated keys, other spellings of a number: nobody writes them, so nobody means
  // well with them.
  if (store_json(part.store, part.part) != text) json.fail("it is not as Strata writes it");
  return part;
}

}  // namespace strata
