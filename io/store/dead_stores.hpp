#pragma once
// Scratch that no live run holds: scratch stores and the scratch files of earlier releases. A live
// run holds the lock of what is its own, so whatever can be locked is nobody's.

#include <cstdint>
#include <string>

#include "strata/io/file_system.hpp"

namespace strata {

// "strata-scratch-PID-SUFFIX"; the process number is for people.
std::string scratch_name(const std::string& suffix);
bool is_scratch_name(const std::string& name);

struct DeadScratch {
  int num_stores = 0;
  std::uint64_t bytes = 0;
};
DeadScratch find_dead_scratch(FileSystem& files, const std::string& directory);
DeadScratch remove_dead_scratch(FileSystem& files, const std::string& directory);

}  // namespace strata
