#pragma once
// A StoreReader reads a versioned store at one of the versions that it can be opened at, without
// becoming its owner: it takes no lock and changes nothing, and whoever makes it sees to it that
// nobody writes meanwhile. Every read is verified.
//
// Thread contract: read() and the questions from any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/store/store_files.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

class StoreReader {
 public:
  // Throws FormatError (damaged, no store), Error when there is no such version.
  StoreReader(IoEngine& engine, const std::string& path, std::uint64_t version);
  ~StoreReader();
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;

  const StoreDescription& description() const { return store_; }
  const std::string& path() const { return path_; }
  const std::string& note() const { return manifest_.note; }
  // The tile's own bytes. Throws FormatError naming tile, file and offset, Error when the drive
  // fails.
  void read(std::size_t tile, std::span<std::byte> bytes) const;

 private:
  void open_tiles(const PartText& first);

  IoEngine& engine_;
  const std::string path_;
  StoreDescription store_;
  Manifest manifest_;
  std::vector<FileId> tiles_;  // by drive
};

}  // namespace strata
