#pragma once
// Reading a store's files: the descriptions of its parts, its manifest, and its tiles. What is
// damaged is a FormatError that names the file and what is wrong.
//
// Thread contract: functions of their arguments.

#include <optional>
#include <string>
#include <vector>

#include "io/store/manifest.hpp"
#include "io/store/store_json.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

struct PartText {
  PartDescription part;
  std::string text;
};
PartText read_description(const FileSystem& files, const std::string& part_path);

// Throws unless the part of `drive` at `path` belongs to the store whose first part is `first`.
void check_part(const FileSystem& files, const PartText& first, std::size_t drive,
                const std::string& path);

// The directories of all parts, the first at `path`, wherever that was when it was made.
std::vector<std::string> part_paths(const StoreDescription& store, const std::string& path);

// The last two committed versions of a store. `before` is the same as `last` where there is none to
// go back to: before the second commit, and after the store was opened at the one before.
struct Manifests {
  Manifest last, before;
  std::size_t slot = 0;  // of `last`, in PartFiles::manifests
};
Manifests read_manifests(const FileSystem& files, const PartText& first, const std::string& path);

// Throws unless the open `tiles` of a drive has the bytes and alignment that it should.
void check_tiles_file(const IoEngine& engine, FileId tiles, const StoreDescription& store,
                      std::size_t drive);

// Reads every committed tile and compares checksums: a message per tile that is damaged.
// `tiles`: by drive; an invalid id is a drive not to be looked at.
struct TilesCheck {
  std::size_t num_read = 0, num_never_written = 0;
  std::uint64_t bytes_read = 0;
  std::vector<std::string> failures;
};
TilesCheck check_tiles(IoEngine& engine, const std::vector<FileId>& tiles,
                       const StoreDescription& store, const Manifest& manifest);

}  // namespace strata
