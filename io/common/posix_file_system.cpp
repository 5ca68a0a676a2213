#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>

#include "io/common/posix_descriptor.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "strata/io/file_system.hpp"

namespace strata {
namespace {

using Facts = struct stat;

// Nothing when there is no such path.
std::optional<Facts> facts_of(const std::string& path) {
  Facts facts = {};
  if (::stat(path.c_str(), &facts) == 0) return facts;
  if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
  throw SystemError("look for", path, errno);
}

Facts facts_of_existing(const std::string& path) {
  Facts facts = {};
  check(::stat(path.c_str(), &facts), "inspect", path);
  return facts;
}

PosixDescriptor open_or_throw(const std::string& path, int flags) {
  auto file = PosixDescriptor::open(path, flags);
  check(file.get(), "open", path);
  return file;
}

std::uint64_t regular_file_bytes(const PosixDescriptor& file, const std::string& path,
                                 std::uint64_t bytes_max) {
  const Facts facts = file.regular_file_facts("read", path);
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  if (bytes <= bytes_max) return bytes;
  throw SystemError(
      "read", fmt::format("{} ({} bytes; at most {} expected)", path, bytes, bytes_max), EFBIG);
}

std::vector<std::byte> read_all(const PosixDescriptor& file, const std::string& path,
                                std::uint64_t bytes) {
  std::vector<std::byte> data(bytes);
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t got = ::read(file.get(), data.data() + done, data.size() - done);
    if (got < 0 && errno == EINTR) continue;
    check(got, "read", path);
    if (got == 0) throw SystemError("read the end (it was cut short meanwhile) of", path, ENODATA);
    done += static_cast<std::size_t>(got);
  }
  return data;
}

void write_all(const PosixDescriptor& file, const std::string& path,
               std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    check(written, "write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

class FlockedFile : public FileLock {
 public:
  explicit FlockedFile(PosixDescriptor file) : file_(std::move(file)) {}

 private:
  PosixDescriptor file_;  // closing it gives the lock up
};

// Between opening a file and locking it, another process may have put another one in its place.
bool is_at(const PosixDescriptor& file, const std::string& path) {
  Facts own = {};
  check(::fstat(file.get(), &own), "inspect", path);
  const auto there = facts_of(path);
  return there && there->st_ino == own.st_ino && there->st_dev == own.st_dev;
}

// A dead run of another user may have left the file: it can be held, if not written.
PosixDescriptor open_lock(const std::string& path) {
  auto file = PosixDescriptor::open(path, O_RDWR | O_CREAT);
  if (file.get() < 0 && errno == EACCES) {
    auto read_only = PosixDescriptor::open(path, O_RDONLY);
    if (read_only.get() >= 0) return read_only;
    if (errno == ENOENT) errno = EACCES;  // It was to be made.
  }
  check(file.get(), "open", path);
  return file;
}

class PosixFileSystem : public FileSystem {
 public:
  bool exists(const std::string& path) const override { return facts_of(path).has_value(); }
  bool is_directory(const std::string& path) const override {
    const auto facts = facts_of(path);
    return facts && S_ISDIR(facts->st_mode);
  }
  std::vector<std::string> list(const std::string& directory) const override;
  std::uint64_t free_bytes(const std::string& path) const override {
    return strata::free_bytes(path);
  }
  std::uint64_t file_bytes(const std::string& path) const override {
    return static_cast<std::uint64_t>(facts_of_existing(path).st_size);
  }
  std::uint64_t allocated_bytes(const std::string& path) const override {
    return static_cast<std::uint64_t>(facts_of_existing(path).st_blocks) * 512;
  }

  void make_directory(const std::string& path) override {
    check(::mkdir(path.c_str(), 0700), "make directory", path);
  }
  void rename(const std::string& from, const std::string& to) override {
    check(::rename(from.c_str(), to.c_str()), "rename", fmt::format("{} to {}", from, to));
  }
  void remove(const std::string& path) override {
    check(std::remove(path.c_str()), "remove", path);
  }
  void sync_directory(const std::string& path) override { strata::sync_directory(path); }

  std::vector<std::byte> read_file(const std::string& path, std::uint64_t bytes_max) const override;
  void write_file(const std::string& path, std::span<const std::byte> bytes) override;
  std::unique_ptr<FileLock> try_lock(const std::string& path) override;
};

std::vector<std::string> PosixFileSystem::list(const std::string& directory) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()), &::closedir);
  if (stream == nullptr) throw SystemError("list", directory, errno);
  std::vector<std::string> names;
  errno = 0;  // the only sign by which readdir tells a failure from the end
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) throw SystemError("list", directory, errno);
  std::ranges::sort(names);
  return names;
}

std::vector<std::byte> PosixFileSystem::read_file(const std::string& path,
                                                  std::uint64_t bytes_max) const {
  // Non-blocking, so that a FIFO in its place cannot hang us.
  const auto file = open_or_throw(path, O_RDONLY | O_NONBLOCK);
  return read_all(file, path, regular_file_bytes(file, path, bytes_max));
}

void PosixFileSystem::write_file(const std::string& path, std::span<const std::byte> bytes) {
  auto file = open_or_throw(path, O_WRONLY | O_CREAT | O_TRUNC);
  write_all(file, path, bytes);
  check(::fsync(file.get()), "flush", path);
  if (const int error_number = file.close()) throw SystemError("close", path, error_number);
}

std::unique_ptr<FileLock> PosixFileSystem::try_lock(const std::string& path) {
  for (;;) {
    auto file = open_lock(path);
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return nullptr;
      throw SystemError("lock", path, errno);
    }
    if (is_at(file, path)) return std::make_unique<FlockedFile>(std::move(file));
  }
}

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem system;
  return system;
}

}  // namespace strata
