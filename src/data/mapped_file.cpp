#include "data/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "strata/core/error.hpp"

namespace strata {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : value_(static_cast<int>(
            check(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open", path.string()))) {}
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

std::size_t regular_file_bytes(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  check(::fstat(file.value(), &status), "examine", path.string());
  if (!S_ISREG(status.st_mode)) {
    throw FormatError(fmt::format("{}: is no regular file", path.string()));
  }
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path);
  const std::size_t size = regular_file_bytes(file, path);
  if (size == 0) return;  // An empty mapping is an error to the kernel, not to us.
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.value(), 0);
  if (start == MAP_FAILED) throw SystemError("map", path.string(), errno);
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace strata
