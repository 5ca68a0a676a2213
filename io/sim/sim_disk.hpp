#pragma once
// A SimDisk is a file system in memory that knows what would survive a power cut: sync() makes a
// file's present bytes the durable ones. Pages are shared between the two until one is written.
//
// Thread contract: all methods from any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace strata {

class SimDisk {
 public:
  struct Result {
    std::uint64_t bytes = 0;
    int error_number = 0;
  };

  explicit SimDisk(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  bool exists(const std::string& path) const;
  void create(const std::string& path);
  std::uint64_t size(const std::string& path) const;
  std::uint64_t bytes_free() const;

  Result read(const std::string& path, std::uint64_t offset, std::span<std::byte> target) const;
  Result write(const std::string& path, std::uint64_t offset, std::span<const std::byte> source);
  int grow(const std::string& path, std::uint64_t bytes);  // 0 or ENOSPC
  void sync(const std::string& path);
  void cut_power();

 private:
  static constexpr std::uint64_t page_bytes = 64 * 1024;
  using Page = std::array<std::byte, page_bytes>;
  struct Contents {
    std::uint64_t size = 0;
    std::map<std::uint64_t, std::shared_ptr<Page>> pages;  // by index; a missing page is zeros
  };
  struct File {
    Contents now, durable;
  };

  std::uint64_t used() const;
  int grow(File& file, std::uint64_t bytes);
  static Page& writable_page(Contents& contents, std::uint64_t index);

  const std::uint64_t capacity_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
};

}  // namespace strata
