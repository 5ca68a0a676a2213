#pragma once
// A FolderOwner is the one process that uses a folder for something: it holds a lock in it, and
// leaves a line there that tells whoever comes second who it is. A process that dies gives it up.
// Where the line is from a run that was killed and the kernel knows better (/proc/locks), the
// kernel is believed. Thread contract: one thread.

#include <memory>
#include <string>

#include "strata/io/file_system.hpp"

namespace strata {

// What a folder is owned for.
struct FolderUse {
  std::string lock_name, line_name;  // files in the folder
  std::string advice;                // to whoever comes second: "wait for its end, or ..."
};

class FolderOwner {
 public:
  // Throws ConfigError naming who has it: pid, host, since when.
  FolderOwner(FileSystem& files, const std::string& directory, const FolderUse& use);
  ~FolderOwner();
  FolderOwner(const FolderOwner&) = delete;
  FolderOwner& operator=(const FolderOwner&) = delete;

 private:
  FileSystem& files_;
  const std::string lock_path_, line_path_;
  std::unique_ptr<FileLock> lock_;
};

// Who has it, without asking for the lock; empty: nobody, or it cannot be told.
std::string folder_user(FileSystem& files, const std::string& directory, const FolderUse& use);

}  // namespace strata
