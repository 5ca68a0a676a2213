#pragma once
// A ScratchFile is a name in a directory that belongs to this run for as long as the object lives:
// created, locked, and removed at the end. The lock is how later runs tell a live run's file from a
// dead one's.
//
// Thread contract: one thread.

#include <cstdint>
#include <string>

namespace strata {

class ScratchFile {
 public:
  // Throws ConfigError when the directory cannot be written, SystemError otherwise.
  explicit ScratchFile(const std::string& directory);
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ScratchFile& operator=(ScratchFile&&) = delete;

  const std::string& path() const { return path_; }

 private:
  bool try_name(const std::string& path, const std::string& directory);

  std::string path_;
  int descriptor_ = -1;  // holds the lock
};

// Scratch files that no live run holds.
struct DeadFiles {
  int num_files = 0;
  std::uint64_t bytes = 0;
};
DeadFiles dead_scratch_files(const std::string& directory);     // those that are there
DeadFiles reclaim_scratch_files(const std::string& directory);  // removes them

}  // namespace strata
