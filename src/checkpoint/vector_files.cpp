#include "vector_files.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/error.hpp"

namespace strata {

VectorFiles::~VectorFiles() { close(); }

FileId VectorFiles::open(const std::string& path, OpenMode mode, Caching caching) {
  const FileId file = engine_.open(path, mode, caching);
  files_.push_back(file);
  const std::uint64_t alignment = engine_.info(file).alignment;
  if (checkpoint_alignment % alignment == 0) return file;
  throw SystemError(fmt::format("transfer in units of {} bytes, since it wants {}, to or from",
                                checkpoint_alignment, alignment),
                    path, EINVAL);
}

void VectorFiles::close() {
  for (const FileId file : files_) engine_.close(file);
  files_.clear();
}

}  // namespace strata
