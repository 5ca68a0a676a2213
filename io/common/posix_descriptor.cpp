#include "io/common/posix_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace strata {

PosixDescriptor PosixDescriptor::open(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (descriptor < 0 && errno == EINTR);
  return PosixDescriptor(descriptor);
}

PosixDescriptor::~PosixDescriptor() { close(); }

PosixDescriptor::PosixDescriptor(PosixDescriptor&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

PosixDescriptor& PosixDescriptor::operator=(PosixDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

int PosixDescriptor::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  // Linux has closed it even where it says EINTR.
  if (descriptor < 0 || ::close(descriptor) == 0 || errno == EINTR) return 0;
  return errno;
}

}  // namespace strata
