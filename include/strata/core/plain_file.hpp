#pragma once
// A PlainFile is one open regular file: positioned reads and writes that finish or throw
// SystemError with the facts. For files that are read and written through the page cache; the NVMe
// tier has its own (io). Thread contract: reads and writes may run from several threads; the rest
// is for one.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace strata {

class PlainFile {
 public:
  static PlainFile open(
      const std::filesystem::path& path);  // for reading; FormatError when it is no regular file
  static PlainFile create(const std::filesystem::path& path);  // for writing; must not exist
  ~PlainFile();
  PlainFile(PlainFile&& other) noexcept;
  PlainFile& operator=(PlainFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const;
  // Throws FormatError when the file ends before the target is full.
  void read(std::uint64_t offset, std::span<std::byte> target) const;
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void sync_and_close();

 private:
  PlainFile(int descriptor, std::filesystem::path path);

  int descriptor_;
  std::filesystem::path path_;
};

// The whole of a file. Throws FormatError when it is larger than `bytes_max`.
std::string read_text_file(const std::filesystem::path& path,
                           std::uint64_t bytes_max = ~std::uint64_t{0});
// Synced; must not exist.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_text_file(const std::filesystem::path& path, const std::string& text);

void sync_directory(const std::filesystem::path& path);  // empty: the current one
// Bytes that an unprivileged process can still write on the file system of `path`.
std::uint64_t free_bytes(const std::filesystem::path& path);

}  // namespace strata
