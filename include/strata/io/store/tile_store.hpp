#pragma once
// A TileStore is the NVMe tier's memory: one preallocated scratch file per drive, addressed by the
// Plan's offsets. Free space is checked and reserved before the run; the files are removed at exit,
// and what a killed run left behind is reclaimed by the next.
//
// Thread contract: constructed and destroyed by one thread; submit() from any.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/io/io_engine.hpp"

namespace strata {

struct DriveExtent {
  std::string directory;    // from offload.nvme_paths
  std::uint64_t bytes = 0;  // what the Plan puts there
};

// Throws ConfigError unless `directory` can serve as part of the NVMe tier: a directory on a drive
// (tmpfs is never called NVMe) that can be written.
void check_drive_directory(const std::string& directory);
// Bytes that a TileStore can reserve in `directory`: the free ones and those that killed runs left
// behind.
std::uint64_t available_drive_bytes(const std::string& directory);

class TileStore {
 public:
  // Creates and reserves the scratch files. Throws ConfigError when check_drive_directory does or a
  // directory has too little space, SystemError otherwise. Writes and reads back a probe on each
  // drive.
  TileStore(IoEngine& engine, std::span<const DriveExtent> drives);
  ~TileStore();
  TileStore(const TileStore&) = delete;
  TileStore& operator=(const TileStore&) = delete;

  int num_drives() const;
  IoEngine& engine() { return engine_; }

  // Starts one transfer between `memory` and [offset, offset + memory.size()) of `drive`. Offset,
  // size and address must be multiples of alignment().
  void submit(IoOp op, int drive, std::uint64_t offset, std::span<std::byte> memory,
              IoPriority priority, IoCompletion& completion);
  // The same, waited for. Throws Error.
  void transfer(IoOp op, int drive, std::uint64_t offset, std::span<std::byte> memory);

  std::uint64_t alignment() const { return alignment_; }
  // Bytes that the file systems have given the scratch files.
  std::uint64_t allocated_bytes() const;
  std::string describe() const;  // per drive: path, bytes, O_DIRECT or why not

 private:
  struct File;
  IoEngine& engine_;
  std::vector<File> files_;
  std::uint64_t alignment_ = 4096;
};

}  // namespace strata
