#include "strata/io/store/tile_store.hpp"

#include <algorithm>
#include <utility>

#include "io/store/drive_file.hpp"
#include "strata/core/error.hpp"

namespace strata {

struct TileStore::File {
  DriveFile drive;

  IoRequest request(IoOp op, std::uint64_t offset, std::span<std::byte> memory) const {
    ensure(offset <= drive.bytes() && memory.size() <= drive.bytes() - offset);
    return {.op = op,
            .file = drive.id(),
            .offset = offset,
            .data = memory.data(),
            .bytes = memory.size()};
  }
};

TileStore::TileStore(IoEngine& engine, std::span<const DriveExtent> drives) : engine_(engine) {
  files_.reserve(drives.size());
  for (const DriveExtent& extent : drives) {
    files_.push_back({DriveFile(engine, extent)});
    DriveFile& drive = files_.back().drive;
    drive.probe();
    alignment_ = std::max(alignment_, drive.alignment());
  }
}

TileStore::~TileStore() = default;

int TileStore::num_drives() const { return static_cast<int>(files_.size()); }

void TileStore::submit(IoOp op, int drive, std::uint64_t offset, std::span<std::byte> memory,
                       IoPriority priority, IoCompletion& completion) {
  IoRequest request = files_.at(static_cast<std::size_t>(drive)).request(op, offset, memory);
  request.priority = priority;
  request.completion = &completion;
  engine_.submit({&request, 1});
}

void TileStore::transfer(IoOp op, int drive, std::uint64_t offset, std::span<std::byte> memory) {
  strata::transfer(engine_, files_.at(static_cast<std::size_t>(drive)).request(op, offset, memory));
}

std::uint64_t TileStore::allocated_bytes() const {
  std::uint64_t bytes = 0;
  for (const File& file : files_) bytes += file.drive.allocated_bytes();
  return bytes;
}

std::string TileStore::describe() const {
  std::string text;
  for (const File& file : files_) {
    if (!text.empty()) text += '\n';
    text += file.drive.describe();
  }
  return text;
}

}  // namespace strata
