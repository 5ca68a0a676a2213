#include "io/common/posix_descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "strata/core/error.hpp"

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

struct stat PosixDescriptor::regular_file_facts(std::string_view action,
                                                const std::string& path) const {
  struct stat facts = {};
  check(::fstat(descriptor_, &facts), "inspect", path);
  if (S_ISDIR(facts.st_mode)) throw SystemError(action, path, EISDIR);
  if (!S_ISREG(facts.st_mode))
    throw SystemError(fmt::format("{} (no regular file)", action), path, EINVAL);
  return facts;
}

int PosixDescriptor::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  // Linux has closed it even where it says EINTR.
  if (descriptor < 0 || ::close(descriptor) == 0 || errno == EINTR) return 0;
  return errno;
}

}  // namespace strata
