#include "io/common/posix_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t usual_alignment = 4096;

// Non-blocking, so that a FIFO in its place cannot hang us.
int open_flags(OpenMode mode) {
  return O_NONBLOCK | (mode == OpenMode::read_only ? O_RDONLY : O_RDWR | O_CREAT);
}

void clear_flags(int descriptor, int flags) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~flags);
}

bool in_memory(int descriptor) {
  struct statfs system = {};
  if (::fstatfs(descriptor, &system) != 0) return false;
  return system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC ||
         system.f_type == HUGETLBFS_MAGIC;
}

// What the kernel says of direct transfers on this file: 0 when it has none, 4096 where it cannot
// tell.
std::uint64_t direct_alignment(int descriptor) {
  struct statx facts = {};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) != 0) return usual_alignment;
  if ((facts.stx_mask & STATX_DIOALIGN) == 0) return usual_alignment;
  return std::max<std::uint64_t>(facts.stx_dio_offset_align, facts.stx_dio_mem_align);
}

// ext2 and ext3 have no fallocate(). The C library then writes a byte into every block, which
// O_DIRECT does not take; what it leaves in the page cache is not to meet direct transfers.
int allocate_by_writing(int descriptor, std::uint64_t bytes) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  ::fcntl(descriptor, F_SETFL, flags & ~O_DIRECT);
  int error_number = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  if (error_number == 0 && ::fsync(descriptor) != 0) error_number = errno;
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::fcntl(descriptor, F_SETFL, flags);
  return error_number;
}

int allocate(int descriptor, std::uint64_t bytes) {
  int result = -1;
  do {
    result = ::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP) return errno;
  return allocate_by_writing(descriptor, bytes);
}

}  // namespace

PosixFile::PosixFile(const std::string& path, OpenMode mode, Caching caching)
    : OpenFile(path, mode),
      descriptor_(PosixDescriptor::open(
          path, open_flags(mode) | (caching == Caching::direct ? O_DIRECT : 0))) {
  direct_ = caching == Caching::direct;
  if (descriptor() < 0 && direct_ && errno == EINVAL) {
    note_ = "O_DIRECT refused by the file system: buffered";
    direct_ = false;
    descriptor_ = PosixDescriptor::open(path, open_flags(mode));
  }
  check(descriptor(), "open", path);
  descriptor_.regular_file_facts("open", path);
  clear_flags(descriptor(), O_NONBLOCK);  // the ring would not wait for a regular file either
  if (direct_) settle_caching();
}

std::uint64_t PosixFile::device() const {
  struct stat facts = {};
  return ::fstat(descriptor(), &facts) == 0 ? facts.st_dev : 0;
}

void PosixFile::settle_caching() {
  // tmpfs takes O_DIRECT since Linux 6.6 and still moves every byte through memory.
  if (in_memory(descriptor()))
    return become_buffered("O_DIRECT means nothing in memory (tmpfs): buffered");
  alignment_ = direct_alignment(descriptor());
  if (alignment_ == 0) become_buffered("the file system has no direct I/O for this file: buffered");
}

void PosixFile::become_buffered(std::string note) {
  clear_flags(descriptor(), O_DIRECT);
  direct_ = false;
  alignment_ = 1;
  note_ = std::move(note);
}

std::uint64_t PosixFile::size() const {
  struct stat facts = {};
  return ::fstat(descriptor(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_size) : 0;
}

std::uint64_t PosixFile::bytes_free() const {
  struct statvfs system = {};
  if (::fstatvfs(descriptor(), &system) != 0) return 0;
  return static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize;
}

FileInfo PosixFile::info() const {
  struct stat facts = {};
  check(::fstat(descriptor(), &facts), "read the size of", path());
  return {.path = path(),
          .bytes = static_cast<std::uint64_t>(facts.st_size),
          .allocated_bytes = static_cast<std::uint64_t>(facts.st_blocks) * 512,
          .alignment = alignment_,
          .direct = direct_,
          .note = note_};
}

void PosixFile::preallocate(std::uint64_t bytes) {
  if (bytes == 0) return;
  const int error_number = allocate(descriptor(), bytes);
  if (error_number == 0) return;
  const auto action = fmt::format("reserve {} ({} bytes; {} free on its file system) for",
                                  format_bytes(bytes), bytes, format_bytes(bytes_free()));
  throw SystemError(action, path(), error_number);
}

void PosixFile::sync() {
  int result = -1;
  do {
    result = ::fdatasync(descriptor());
  } while (result != 0 && errno == EINTR);
  check(result, "flush", path());
}

}  // namespace strata
