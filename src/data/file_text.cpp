#include "data/file_text.hpp"

#include "data/mapped_file.hpp"

namespace strata {

std::string read_file_text(const std::filesystem::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace strata
