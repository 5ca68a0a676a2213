#pragma once
// A StorePart is one drive's part of a store in use: its directory, locked, and its `tiles`, open
// in the engine. Unless it is kept, its destructor removes it.
//
// Thread contract: constructed and destroyed by one thread; the questions from any.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/store/part_files.hpp"
#include "strata/io/store/shard_store.hpp"

namespace strata {

class StorePart {
 public:
  // Makes the directory `path` with an empty `tiles`; of a versioned store marked as unfinished,
  // durably, before anything else is in it. Nothing when a run that looked for dead scratch took it
  // away meanwhile. Throws SystemError: EEXIST when there is something of that name.
  static std::optional<StorePart> make(IoEngine& engine, const std::string& path, StoreKind kind);
  // Opens a part that is there. Throws ConfigError when it is in use, FormatError when a file is
  // missing.
  static StorePart open(IoEngine& engine, const std::string& path);
  ~StorePart();
  StorePart(StorePart&& other) noexcept;
  StorePart(const StorePart&) = delete;
  StorePart& operator=(const StorePart&) = delete;
  StorePart& operator=(StorePart&&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const { return part_file(path_, name); }
  FileId tiles() const { return tiles_; }
  std::string describe(std::uint64_t bytes) const;

  void keep() { keep_ = true; }
  void discard() { keep_ = false; }
  void note(std::string note) { note_ = std::move(note); }

 private:
  StorePart(IoEngine& engine, std::string path, std::unique_ptr<FileLock> lock, bool keep);
  void mark_as_unfinished();
  void open_tiles();

  IoEngine* engine_;  // nullptr once moved from
  std::string path_;
  std::string note_;
  std::unique_ptr<FileLock> lock_;
  FileId tiles_;
  bool keep_;
};

// Replaces a file by another in one step: written and flushed aside, then renamed. The name is not
// yet durable.
void replace_file(FileSystem& files, const std::string& path, const std::string& aside,
                  std::span<const std::byte> bytes);

}  // namespace strata
