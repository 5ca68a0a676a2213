#pragma once
// A MappedFile is a regular file mapped for reading. It owns the mapping; bytes() stays valid until
// it is destroyed. Thread contract: immutable after construction.

#include <cstddef>
#include <filesystem>
#include <span>

namespace strata {

class MappedFile {
 public:
  // Throws SystemError, or FormatError when the path is no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace strata
