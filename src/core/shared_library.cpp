#include "strata/core/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "strata/core/error.hpp"

namespace strata {
namespace {

std::string loader_error() {
  const char* const text = ::dlerror();
  return text == nullptr ? "no reason given" : text;
}

}  // namespace

SharedLibrary::SharedLibrary(std::string_view purpose, std::span<const std::string> names,
                             std::span<const std::string> folders, std::string_view advice)
    : advice_(advice) {
  std::string said;
  for (const std::string& name : names) {
    if (load(name, said)) return;
    for (const std::string& folder : folders)
      if (load(folder + "/" + name, said)) return;
  }
  throw ConfigError(fmt::format("{} cannot be loaded: {}{}", purpose, said, advice));
}

bool SharedLibrary::load(const std::string& path, std::string& said) {
  path_ = path;
  handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) said.append(loader_error()).append("; ");
  return handle_ != nullptr;
}

void* SharedLibrary::symbol(const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (address != nullptr) return address;
  throw ConfigError(fmt::format("{} lacks {}: {}; {}", path_, name, loader_error(), advice_));
}

}  // namespace strata
