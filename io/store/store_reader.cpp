#include "io/store/store_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/store/aligned_memory.hpp"
#include "io/store/checksum.hpp"
#include "io/store/part_files.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

Manifest manifest_of(const FileSystem& files, const PartText& first, const std::string& path,
                     std::uint64_t version) {
  Manifests manifests = read_manifests(files, first, path);
  if (manifests.last.version == version) return std::move(manifests.last);
  if (manifests.before.version == version) return std::move(manifests.before);
  throw Error(fmt::format("{} has no version {}", path, version));
}

}  // namespace

StoreReader::StoreReader(IoEngine& engine, const std::string& path, std::uint64_t version)
    : engine_(engine), path_(path) {
  const PartText first = read_description(engine.file_system(), path);
  manifest_ = manifest_of(engine.file_system(), first, path, version);
  store_ = first.part.store;
  open_tiles(first);
}

void StoreReader::open_tiles(const PartText& first) {
  const auto paths = part_paths(store_, path_);
  for (std::size_t drive = 0; drive < paths.size(); ++drive) {
    check_part(engine_.file_system(), first, drive, paths[drive]);
    tiles_.push_back(engine_.open(part_file(paths[drive], PartFiles::tiles), OpenMode::read_only,
                                  Caching::direct));
    check_tiles_file(engine_, tiles_.back(), store_, drive);
  }
}

StoreReader::~StoreReader() {
  for (const FileId file : tiles_) engine_.close(file);
}

void StoreReader::read(std::size_t tile, std::span<std::byte> bytes) const {
  const TileExtent& extent = store_.tiles.at(tile);
  const TileRecord& record = manifest_.tiles[tile];
  const FileId file = tiles_[static_cast<std::size_t>(extent.tile.drive)];
  ensure(bytes.size() == extent.tile.bytes);
  const auto fail = [&](const std::string& what) {
    throw FormatError(fmt::format("tile '{}' of {} is damaged: {}", extent.tile.name, path_, what));
  };
  if (!record.written()) fail("nothing was ever written to it");
  const AlignedMemory memory(store_.alignment, store_.padded_bytes(tile), "reading a store");
  const std::uint64_t offset = extent.offsets[record.place];
  transfer(engine_, {.op = IoOp::read,
                     .file = file,
                     .offset = offset,
                     .data = memory.span().data(),
                     .bytes = memory.span().size(),
                     .priority = IoPriority::prefetch});
  const auto own = memory.span().first(bytes.size());
  if (const std::uint64_t found = checksum(own); found != record.checksum)
    fail(
        fmt::format("the checksum of its bytes at offset {} of {} is {:016x}, committed was "
                    "{:016x}",
                    offset, engine_.info(file).path, found, record.checksum));
  std::ranges::copy(own, bytes.begin());
}

}  // namespace strata
