#pragma once
// A FileSystem is what an IoEngine's disks offer besides fast transfers: names, directories, locks
// and small files read or written whole. The real one and the simulated one keep one contract, so
// that code which must survive a power cut is tested against every one.
//
// Durability. write_file() makes a file's bytes durable, not its name; sync_directory() makes the
// names in a directory durable. rename() replaces atomically: after a power cut the target is the
// old file or the new one.
//
// Thread contract: all methods from any thread. Errors are SystemErrors that name action and path.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace strata {

// Held until destroyed; a process that dies gives it up.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual bool exists(const std::string& path) const = 0;
  virtual bool is_directory(const std::string& path) const = 0;
  virtual std::vector<std::string> list(const std::string& directory) const = 0;  // names, sorted
  virtual std::uint64_t free_bytes(const std::string& path) const = 0;
  virtual std::uint64_t file_bytes(const std::string& path) const = 0;       // its length
  virtual std::uint64_t allocated_bytes(const std::string& path) const = 0;  // blocks it holds

  // For this user alone (mode 0700). Fails with EEXIST when it is there.
  virtual void make_directory(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;  // a file, or an empty directory
  virtual void sync_directory(const std::string& path) = 0;

  // `bytes_max`: a longer file is an error, not an allocation.
  virtual std::vector<std::byte> read_file(const std::string& path,
                                           std::uint64_t bytes_max) const = 0;
  virtual void write_file(const std::string& path, std::span<const std::byte> bytes) = 0;

  // Creates the file when it is missing. nullptr when somebody holds it. On a real disk the lock is
  // an exclusive flock.
  virtual std::unique_ptr<FileLock> try_lock(const std::string& path) = 0;
};

FileSystem& posix_file_system();

}  // namespace strata
