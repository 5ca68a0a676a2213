#include "strata/core/plain_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Disk full is the usual reason for a failed write, so the message always says how much room there
// is.
[[noreturn]] void throw_write_error(const std::filesystem::path& path, std::uint64_t offset,
                                    int error_number) {
  std::string room = "free space unknown";
  struct statvfs system {};
  if (::statvfs(path.parent_path().empty() ? "." : path.parent_path().c_str(), &system) == 0) {
    const std::uint64_t bytes = std::uint64_t{system.f_bavail} * system.f_frsize;
    room = fmt::format("{} ({} bytes) free on its file system", format_bytes(bytes), bytes);
  }
  throw SystemError("write", fmt::format("{} at byte {}, {}", path.string(), offset, room),
                    error_number);
}

}  // namespace

PlainFile::PlainFile(int descriptor, std::filesystem::path path)
    : descriptor_(descriptor), path_(std::move(path)) {}

PlainFile::PlainFile(PlainFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

PlainFile::~PlainFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

PlainFile PlainFile::open(const std::filesystem::path& path) {
  // Non-blocking, so that a FIFO in a hostile folder cannot hang the open.
  const auto descriptor = static_cast<int>(
      check(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), "open", path.string()));
  PlainFile file(descriptor, path);
  struct stat status {};
  check(::fstat(descriptor, &status), "inspect", path.string());
  if (!S_ISREG(status.st_mode)) throw FormatError(path.string() + " is not a regular file");
  return file;
}

PlainFile PlainFile::create(const std::filesystem::path& path) {
  const long descriptor = check(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666),
                                "create", path.string());
  return {static_cast<int>(descriptor), path};
}

std::uint64_t PlainFile::size() const {
  struct stat status {};
  check(::fstat(descriptor_, &status), "inspect", path_.string());
  return static_cast<std::uint64_t>(status.st_size);
}

void PlainFile::read(std::uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t got =
        ::pread(descriptor_, target.data(), target.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    check(got, "read", fmt::format("{} at byte {}", path_.string(), offset));
    if (got == 0) {
      throw FormatError(
          fmt::format("{} ends at byte {}, {} bytes short: it was truncated while open",
                      path_.string(), offset, target.size()));
    }
    target = target.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void PlainFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(path_, offset, errno);
    if (written == 0) throw_write_error(path_, offset, ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void PlainFile::sync_and_close() {
  check(::fsync(descriptor_), "flush", path_.string());
  check(::close(std::exchange(descriptor_, -1)), "close", path_.string());
}

std::string read_text_file(const std::filesystem::path& path, std::uint64_t bytes_max) {
  const PlainFile file = PlainFile::open(path);
  const std::uint64_t size = file.size();
  if (size > bytes_max) {
    throw FormatError(
        fmt::format("{} has {} bytes; at most {} are accepted", path.string(), size, bytes_max));
  }
  std::string text(size, '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  PlainFile file = PlainFile::create(path);
  file.write(0, bytes);
  file.sync_and_close();
}

void write_text_file(const std::filesystem::path& path, const std::string& text) {
  write_file(path, std::as_bytes(std::span(text)));
}

void sync_directory(const std::filesystem::path& path) {
  const std::filesystem::path directory = path.empty() ? "." : path;
  const auto descriptor =
      static_cast<int>(check(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                             "open directory", directory.string()));
  const int result = ::fsync(descriptor);
  const int error_number = errno;
  ::close(descriptor);
  if (result < 0) throw SystemError("flush directory", directory.string(), error_number);
}

std::uint64_t free_bytes(const std::filesystem::path& path) {
  struct statvfs system {};
  check(::statvfs(path.c_str(), &system), "ask for the free space of", path.string());
  return std::uint64_t{system.f_bavail} * system.f_frsize;
}

}  // namespace strata
