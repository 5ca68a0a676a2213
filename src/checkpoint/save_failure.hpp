#pragma once
// What a failure to save a checkpoint is told as. Thread contract: any thread.

#include <cstdint>
#include <string>

#include "strata/io/file_system.hpp"

namespace strata {

struct SaveSite {
  const FileSystem& files;
  std::string directory;  // of the checkpoints
  std::int64_t step = 0;
};

// Throws the error that is being handled again, with the checkpoint that it was for, the bytes free
// and what to do. A SystemError keeps its errno; what is no Error passes as it is.
[[noreturn]] void rethrow_as_not_saved(const SaveSite& site);

template <typename Action>
auto or_not_saved(const SaveSite& site, Action action) {
  try {
    return action();
  } catch (...) {
    rethrow_as_not_saved(site);
  }
}

}  // namespace strata
