#include "new_file.hpp"

#include <fmt/format.h>

#include <utility>

#include "strata/core/error.hpp"

namespace strata {

NewFile::NewFile(IoEngine& engine, std::string path, std::uint64_t bytes)
    : engine_(engine), path_(std::move(path)) {
  if (engine_.file_system().exists(path_))
    throw Error(fmt::format("{} is there already: remove it", path_));
  file_ = engine_.open(path_, OpenMode::read_write_create, Caching::direct);
  try {
    engine_.preallocate(file_, bytes);
  } catch (...) {
    put_away();
    throw;
  }
}

NewFile::~NewFile() { put_away(); }

// What the drive does not let go of stays in the scratch directory, which goes away as a whole.
void NewFile::put_away() noexcept {
  try {
    engine_.close(file_);
    engine_.file_system().remove(path_);
  } catch (const Error&) {
  }
}

}  // namespace strata
