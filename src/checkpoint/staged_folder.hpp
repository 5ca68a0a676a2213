#pragma once
// A StagedFolder is a folder under construction: written as `<target>.tmp-<pid>` beside its target
// and renamed when whole. Destroyed before commit(), it removes what was written. While it lives it
// holds the lock of a file in it, `.strata-unfinished`: what can be locked is nobody's any more,
// and goes before another is made for that target. Thread contract: one thread.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "strata/io/file_system.hpp"

namespace strata {

// Throws ConfigError when the target exists, SystemError when its parent cannot be made or `bytes`
// do not fit on its file system.
void check_staging(const std::filesystem::path& target, std::uint64_t bytes);

// The name of the target, of a name that a StagedFolder has; empty: it is none.
std::string staged_target(const std::string& name);

// Whether a live process is writing it.
bool is_being_staged(const std::filesystem::path& folder);

// Removes what processes that died left beside `target` of folders for it; leaves what a live one
// holds, and what has no such lock. Returns the paths of what is gone.
std::vector<std::filesystem::path> clear_dead_staging(const std::filesystem::path& target);

class StagedFolder {
 public:
  // Throws like check_staging.
  StagedFolder(const std::filesystem::path& target, std::uint64_t bytes);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void commit();  // Syncs the folder, renames it and syncs its parent.

 private:
  void make();
  bool try_make(const std::filesystem::path& path);

  std::filesystem::path target_, path_;
  std::unique_ptr<FileLock> lock_;  // null: the file system has none
  bool committed_ = false;
};

}  // namespace strata
