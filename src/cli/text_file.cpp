#include "cli/text_file.hpp"

#include <cerrno>
#include <fstream>

#include "strata/core/error.hpp"

namespace strata {

void replace_text_file(const std::filesystem::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw SystemError("write", path.string(), errno == 0 ? EIO : errno);
}

}  // namespace strata
