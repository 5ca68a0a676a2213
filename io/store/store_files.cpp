#include "io/store/store_files.hpp"

#include <fmt/format.h>

#include <utility>

#include "io/store/checksum.hpp"
#include "io/store/part_files.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

std::vector<std::byte> read_part_file(const FileSystem& files, const std::string& path,
                                      std::uint64_t bytes_max) {
  if (!files.exists(path))
    throw FormatError(fmt::format("{} is missing: a part of the store is damaged", path));
  return files.read_file(path, bytes_max);
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

PartText read_description(const FileSystem& files, const std::string& part_path) {
  const std::string path = part_file(part_path, PartFiles::description);
  std::string text = as_text(read_part_file(files, path, store_json_bytes_max));
  PartDescription part = parse_store_json(text, path);
  return {std::move(part), std::move(text)};
}

void check_part(const FileSystem& files, const PartText& first, std::size_t drive,
                const std::string& path) {
  const auto fail = [&](const std::string& what) {
    throw FormatError(fmt::format("{}: {}", part_file(path, PartFiles::description), what));
  };
  if (!files.is_directory(path))
    throw FormatError(
        fmt::format("{} is missing: it is the part on drive {} of the store; is the drive mounted?",
                    path, drive));
  const PartText found = read_description(files, path);
  const StoreDescription& store = first.part.store;
  if (found.part.store.id != store.id)
    fail(fmt::format("it is part of store {}, not of store {}", found.part.store.id, store.id));
  if (found.part.part != drive)
    fail(fmt::format("it is the part of drive {}, not of drive {}", found.part.part, drive));
  if (found.text != store_json(store, drive)) fail("it differs from that of the first drive");
}

std::vector<std::string> part_paths(const StoreDescription& store, const std::string& path) {
  std::vector<std::string> paths = {path};
  for (std::size_t i = 1; i < store.drives.size(); ++i) paths.push_back(store.part_path(i));
  return paths;
}

namespace {

Manifest read_manifest(const FileSystem& files, const PartText& first, const std::string& file) {
  const std::size_t num_tiles = first.part.store.tiles.size();
  Manifest manifest =
      decode_manifest(read_part_file(files, file, manifest_bytes_max(num_tiles)), file);
  if (manifest.description_checksum != checksum(std::as_bytes(std::span(first.text))))
    throw FormatError(
        fmt::format("{}: it belongs to another store.json than the one beside it", file));
  if (manifest.tiles.size() != num_tiles)
    throw FormatError(fmt::format("{}: it tells of {} tiles; the store has {}", file,
                                  manifest.tiles.size(), num_tiles));
  return manifest;
}

}  // namespace

Manifests read_manifests(const FileSystem& files, const PartText& first, const std::string& path) {
  Manifests found;
  const auto file = [&](std::size_t slot) { return part_file(path, PartFiles::manifests[slot]); };
  found.last = read_manifest(files, first, file(0));
  found.before = read_manifest(files, first, file(1));
  if (found.last.version == found.before.version && encode(found.last) != encode(found.before))
    throw FormatError(fmt::format("{}: it tells otherwise of the same version than {}", file(1),
                                  PartFiles::manifests[0].substr(1)));
  if (found.last.version >= found.before.version) return found;
  std::swap(found.last, found.before);
  found.slot = 1;
  return found;
}

void check_tiles_file(const IoEngine& engine, FileId tiles, const StoreDescription& store,
                      std::size_t drive) {
  const FileInfo info = engine.info(tiles);
  const std::uint64_t bytes = store.drives[drive].bytes;
  if (info.bytes < bytes)
    throw FormatError(
        fmt::format("{} has {} bytes; it should have {}", info.path, info.bytes, bytes));
  if (info.alignment > store.alignment)
    throw FormatError(
        fmt::format("{} wants transfers aligned to {} bytes; the store was made for {}: copy it to "
                    "a drive like the one it was made on",
                    info.path, info.alignment, store.alignment));
}

}  // namespace strata
