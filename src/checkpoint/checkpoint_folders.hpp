#pragma once
// Removing the folders of checkpoints. Thread contract: pure functions of the disk.

#include <string>

#include "strata/io/file_system.hpp"

namespace strata {

bool is_checkpoint_folder(const FileSystem& files, const std::string& path);  // of ours

// The files in it, then the folder. Throws SystemError, also when there are folders in it.
void remove_folder(FileSystem& files, const std::string& path);
void remove_folder_if_there(FileSystem& files, const std::string& path);
// The next run tries again.
void try_remove_folder(FileSystem& files, const std::string& path) noexcept;

}  // namespace strata
