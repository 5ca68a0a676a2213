#pragma once
// A DriveFile is one drive's part of a TileStore: the scratch file, open in the engine and reserved
// in full.
//
// Thread contract: constructed and destroyed by one thread.

#include <cstdint>
#include <optional>
#include <string>

#include "io/store/scratch_file.hpp"
#include "strata/io/io_engine.hpp"
#include "strata/io/store/tile_store.hpp"

namespace strata {

class DriveFile {
 public:
  // Throws like TileStore's constructor.
  DriveFile(IoEngine& engine, const DriveExtent& drive);
  ~DriveFile();
  DriveFile(DriveFile&& other) noexcept;
  DriveFile(const DriveFile&) = delete;
  DriveFile& operator=(const DriveFile&) = delete;
  DriveFile& operator=(DriveFile&&) = delete;

  FileId id() const { return id_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t alignment() const { return alignment_; }
  std::uint64_t allocated_bytes() const;  // by the file system
  std::string describe() const;

  // Writes a pattern, reads it back and compares. Throws Error.
  void probe();

 private:
  void open_scratch(const std::string& directory);
  void reserve(const std::string& directory);

  IoEngine* engine_;
  std::uint64_t bytes_ = 0;
  std::uint64_t alignment_ = 0;
  std::string note_;
  std::optional<ScratchFile> scratch_;  // none on a simulated disk
  FileId id_;
};

}  // namespace strata
