#pragma once
// A shared library that is looked for when it is needed, not when the program starts. It stays
// loaded: its threads, and what it has made, may outlive whoever asked. Thread contract: immutable.

#include <span>
#include <string>
#include <string_view>

namespace strata {

class SharedLibrary {
 public:
  // The first of `names` that there is: where the loader looks, then in `folders`. `purpose` opens
  // what is said of failures ("NCCL, which carries between GPUs"), `advice` is what to do about
  // them. Throws ConfigError with what the loader said of each name.
  SharedLibrary(std::string_view purpose, std::span<const std::string> names,
                std::span<const std::string> folders, std::string_view advice);

  const std::string& path() const { return path_; }
  // Throws ConfigError, with the advice, when the library has none of that name.
  void* symbol(const char* name) const;
  template <typename Function>
  void find(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  bool load(const std::string& path, std::string& said);

  std::string path_;  // as it was found
  std::string advice_;
  void* handle_ = nullptr;
};

}  // namespace strata
