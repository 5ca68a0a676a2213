#pragma once
// Stores that nobody uses, by the beginning of their names. Thread contract: functions of their
// arguments.

#include <cstdint>
#include <string>

#include "strata/io/file_system.hpp"

namespace strata {

// What the parts in `directory` hold of its drive.
std::uint64_t named_store_bytes(const FileSystem& files, const std::string& directory,
                                const std::string& prefix);
// Removes the parts in `directory`, whole or damaged, that no process has the lock of. What cannot
// be removed stays. Returns whether nothing of such a name is left, nor comes back in a power cut.
bool remove_named_stores(FileSystem& files, const std::string& directory,
                         const std::string& prefix);

}  // namespace strata
