#pragma once
// A file to which whole lines are appended, each with its own write, so a reader or a crash sees no
// half line but the last. A line that could not be written is reported and lost; the next one
// begins on a line of its own. Thread contract: one thread.

#include <filesystem>
#include <string>

namespace strata {

class LineFile {
 public:
  explicit LineFile(
      const std::filesystem::path& path);  // Created or appended to. Throws SystemError.
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Returns 0, or the errno that stopped the line.
  int append(const std::string& line);
  const std::filesystem::path& path() const { return path_; }

 private:
  bool ends_mid_line() const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  bool is_mid_line_ = false;
};

}  // namespace strata
