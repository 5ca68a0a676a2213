#include "data/mapped_file.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"

namespace strata {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const PlainFile file = PlainFile::open(path);
  const std::size_t size = file.size();
  if (size == 0) return;  // An empty mapping is an error to the kernel, not to us.
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (start == MAP_FAILED) throw SystemError("map", path.string(), errno);
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace strata
