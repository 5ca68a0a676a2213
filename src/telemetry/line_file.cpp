#include "line_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "strata/core/error.hpp"

namespace strata {

LineFile::LineFile(const std::filesystem::path& path) : path_(path) {
  descriptor_ = static_cast<int>(check(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644), "open", path.string()));
  is_mid_line_ = ends_mid_line();
}

LineFile::~LineFile() { ::close(descriptor_); }

// A run that was killed may have left half a line.
bool LineFile::ends_mid_line() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    return false;
  char last = '\n';
  return ::pread(descriptor_, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

int LineFile::append(const std::string& line) {
  const std::string text = (is_mid_line_ ? "\n" : "") + line + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    rest.remove_prefix(static_cast<std::size_t>(written));
    is_mid_line_ = !rest.empty();
  }
  return 0;
}

}  // namespace strata
