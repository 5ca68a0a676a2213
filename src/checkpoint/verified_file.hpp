#pragma once
// A VerifiedFile is a new file that is believed only when it has come back: the checksum of each
// part is kept as it is written, and finish() reads the file from the drive, past the page cache,
// and compares. Thread contract: one thread.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/core/plain_file.hpp"

namespace strata {

class VerifiedFile {
 public:
  explicit VerifiedFile(const std::filesystem::path& path);  // must not exist
  const std::filesystem::path& path() const { return file_.path(); }

  // `what` names the bytes to whoever reads that they are damaged.
  void write(std::uint64_t offset, std::span<const std::byte> bytes, std::string_view what);
  // The parts make up the file, in whatever order they came. Flushes, closes and reads back, in
  // export_read_back_bytes of memory. Throws SystemError where a byte cannot be written or read,
  // Error naming file, part and offset where the file is not as it was written.
  void finish();

 private:
  struct Part {
    std::uint64_t offset = 0, bytes = 0, checksum = 0;
    std::string what;
  };

  void read_back();

  PlainFile file_;
  std::vector<Part> parts_;
};

// The same of a small file at once.
void write_verified_text(const std::filesystem::path& path, const std::string& text);

}  // namespace strata
