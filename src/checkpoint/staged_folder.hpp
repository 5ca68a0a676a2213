#pragma once
// A StagedFolder is a folder under construction: written as `<target>.tmp-<pid>` beside its target
// and renamed when whole. Destroyed before commit(), it removes what was written. Thread contract:
// one thread.

#include <cstdint>
#include <filesystem>
#include <string>

namespace strata {

// Throws ConfigError when the target exists, SystemError when its parent cannot be made or `bytes`
// do not fit on its file system.
void check_staging(const std::filesystem::path& target, std::uint64_t bytes);

// The name of the target, of a name that a StagedFolder has; empty: it is none.
std::string staged_target(const std::string& name);

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
  std::filesystem::path target_, path_;
  bool committed_ = false;
};

}  // namespace strata
