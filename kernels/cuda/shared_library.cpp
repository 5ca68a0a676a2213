#include "kernels/cuda/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "strata/core/error.hpp"

namespace strata::cuda {

SharedLibrary::SharedLibrary(std::span<const std::string> names,
                             std::span<const std::string> folders, std::string_view advice) {
  std::string said;
  for (const std::string& name : names) {
    if (load(name, said)) return;
    for (const std::string& folder : folders)
      if (load(folder + "/" + name, said)) return;
  }
  throw Error(fmt::format("cannot load a shared library: {}{}", said, advice));
}

bool SharedLibrary::load(const std::string& path, std::string& said) {
  path_ = path;
  handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) said.append(::dlerror()).append("; ");
  return handle_ != nullptr;
}

void* SharedLibrary::symbol(const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (address == nullptr) throw Error(fmt::format("{} has no {}: {}", path_, name, ::dlerror()));
  return address;
}

}  // namespace strata::cuda
