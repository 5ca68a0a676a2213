#pragma once
// A SimDisk is a file system in memory that knows what would survive a power cut, and whose power
// can be made to fail at any of its changes. Lengths count as space taken: it has no holes.
//
// Thread contract: all methods from any thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/sim/sim_names.hpp"
#include "strata/io/io_engine.hpp"

namespace strata {

class SimDisk : public FileSystem {
 public:
  struct Result {
    std::uint64_t bytes = 0;
    int error_number = 0;
  };

  explicit SimDisk(const SimOptions& options);

  // Open files, by what open() gave.
  std::shared_ptr<SimInode> open(const std::string& path, OpenMode mode);  // Throws SystemError.
  std::uint64_t size(const SimInode& file) const;
  std::uint64_t bytes_free() const;
  Result read(const SimInode& file, std::uint64_t offset, std::span<std::byte> target) const;
  Result write(SimInode& file, std::uint64_t offset, std::span<const std::byte> source);
  int grow(SimInode& file, std::uint64_t bytes);  // 0 or an errno
  int sync(SimInode& file);                       // 0 or an errno

  void cut_power();
  void power_fails_at(std::uint64_t change);
  std::uint64_t changes() const;

  bool exists(const std::string& path) const override;
  bool is_directory(const std::string& path) const override;
  std::vector<std::string> list(const std::string& directory) const override;
  std::uint64_t free_bytes(const std::string&) const override { return bytes_free(); }
  std::uint64_t file_bytes(const std::string& path) const override;
  std::uint64_t allocated_bytes(const std::string& path) const override;
  void make_directory(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_directory(const std::string& path) override;
  std::vector<std::byte> read_file(const std::string& path, std::uint64_t bytes_max) const override;
  void write_file(const std::string& path, std::span<const std::byte> bytes) override;
  std::unique_ptr<FileLock> try_lock(const std::string& path) override;

 private:
  using Lock = std::lock_guard<std::mutex>;

  // Counts a change: EIO, or an exception, when there is no power for it.
  int next_change();
  void next_change(std::string_view action, const std::string& path);
  SimInode& existing_file(const std::string& path, std::string_view action) const;
  std::shared_ptr<SimInode> open_or_create(const std::string& path, std::string_view action);
  std::uint64_t used() const;
  bool has_room(const SimInode& file, std::uint64_t bytes) const;

  const std::uint64_t seed_;
  const std::uint64_t sector_bytes_;
  const std::uint64_t capacity_bytes_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  SimNames names_;
  std::vector<std::weak_ptr<SimInode>> inodes_;  // those with names and those only open
  std::uint64_t num_inodes_ = 0;                 // ever made
  std::uint64_t num_locks_ = 0;                  // ever given
  std::uint64_t changes_ = 0;
  std::uint64_t power_fails_at_;
};

}  // namespace strata
