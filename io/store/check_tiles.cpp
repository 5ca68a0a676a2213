#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "io/common/awaited_transfer.hpp"
#include "io/store/aligned_memory.hpp"
#include "io/store/checksum.hpp"
#include "io/store/store_files.hpp"

namespace strata {
namespace {

// One tile being read, into a buffer that is used over and over.
class TileReader {
 public:
  TileReader(std::uint64_t alignment, std::uint64_t bytes)
      : memory_(alignment, bytes, "the check of a store's tiles") {}
  ~TileReader() {
    if (tile_) transfer_.wait();
  }
  TileReader(const TileReader&) = delete;
  TileReader& operator=(const TileReader&) = delete;

  void start(IoEngine& engine, std::size_t tile, IoRequest request) {
    tile_ = tile;
    request.data = memory_.span().data();
    request.completion = &transfer_;
    engine.submit({&request, 1});
  }
  std::optional<std::size_t> tile() const { return tile_; }
  IoResult wait() {
    tile_.reset();
    return transfer_.wait();
  }
  std::span<const std::byte> bytes(std::uint64_t count) const {
    return memory_.span().first(count);
  }

 private:
  const AlignedMemory memory_;
  AwaitedTransfer transfer_;
  std::optional<std::size_t> tile_;
};

class TilesChecker {
 public:
  TilesChecker(IoEngine& engine, const std::vector<FileId>& tiles, const StoreDescription& store,
               const Manifest& manifest)
      : engine_(engine), tiles_(tiles), store_(store), manifest_(manifest) {}

  TilesCheck run() {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < store_.tiles.size(); ++i)
      bytes = std::max(bytes, store_.padded_bytes(i));
    std::array<TileReader, 4> readers = {
        TileReader(store_.alignment, bytes), TileReader(store_.alignment, bytes),
        TileReader(store_.alignment, bytes), TileReader(store_.alignment, bytes)};
    for (std::size_t i = 0; i < store_.tiles.size(); ++i) start(readers[i % readers.size()], i);
    for (TileReader& reader : readers) finish(reader);
    return std::move(check_);
  }

 private:
  void start(TileReader& reader, std::size_t tile) {
    finish(reader);
    const TileRecord& record = manifest_.tiles[tile];
    if (!record.written()) return void(++check_.num_never_written);
    const TileExtent& extent = store_.tiles[tile];
    const FileId file = tiles_[static_cast<std::size_t>(extent.tile.drive)];
    if (!file.valid()) return;
    reader.start(engine_, tile,
                 {.op = IoOp::read,
                  .file = file,
                  .offset = extent.offsets[record.place],
                  .bytes = store_.padded_bytes(tile),
                  .priority = IoPriority::prefetch});
  }

  void finish(TileReader& reader) {
    const auto tile = reader.tile();
    if (!tile) return;
    const IoResult result = reader.wait();
    const StoreTile& facts = store_.tiles[*tile].tile;
    ++check_.num_read;
    check_.bytes_read += facts.bytes;
    if (!result.ok()) return fail(*tile, result.message);
    const std::uint64_t found = checksum(reader.bytes(facts.bytes));
    const std::uint64_t expected = manifest_.tiles[*tile].checksum;
    if (found != expected)
      fail(*tile, fmt::format("the checksum of its {} bytes is {:016x}, committed was {:016x}",
                              facts.bytes, found, expected));
  }

  void fail(std::size_t tile, const std::string& what) {
    const TileExtent& extent = store_.tiles[tile];
    const FileId file = tiles_[static_cast<std::size_t>(extent.tile.drive)];
    check_.failures.push_back(
        fmt::format("tile '{}' at offset {} of {} is damaged: {}", extent.tile.name,
                    extent.offsets[manifest_.tiles[tile].place], engine_.info(file).path, what));
  }

  IoEngine& engine_;
  const std::vector<FileId>& tiles_;
  const StoreDescription& store_;
  const Manifest& manifest_;
  TilesCheck check_;
};

}  // namespace

TilesCheck check_tiles(IoEngine& engine, const std::vector<FileId>& tiles,
                       const StoreDescription& store, const Manifest& manifest) {
  return TilesChecker(engine, tiles, store, manifest).run();
}

}  // namespace strata
