#pragma once
// A shared library that is looked for when it is needed, not when the program starts. It stays
// loaded: what it has made may outlive whoever asked. Thread contract: immutable.

#include <span>
#include <string>
#include <string_view>

namespace strata::cuda {

class SharedLibrary {
 public:
  // The first of `names` that there is: where the loader looks, then in `folders`. Throws Error
  // with what the loader said of each, and `advice`.
  SharedLibrary(std::span<const std::string> names, std::span<const std::string> folders,
                std::string_view advice);

  const std::string& path() const { return path_; }
  // Throws Error when the library has none of that name.
  void* symbol(const char* name) const;

 private:
  bool load(const std::string& path, std::string& said);

  std::string path_;  // as it was found
  void* handle_ = nullptr;
};

}  // namespace strata::cuda
