#include "cli/text_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

void write_through(const fs::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw SystemError("write", path.string(), errno == 0 ? EIO : errno);
}

// A link stays a link, to the new text.
fs::path target_of(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target;
}

void write_beside_and_rename(const fs::path& target, const std::string& text) {
  const fs::path temporary = fmt::format("{}.tmp-{}", target.string(), ::getpid());
  std::error_code ignored;
  fs::remove(temporary, ignored);
  try {
    write_text_file(temporary, text);
    check(std::rename(temporary.c_str(), target.c_str()), "replace", target.string());
  } catch (...) {
    fs::remove(temporary, ignored);
    throw;
  }
  sync_directory(target.parent_path());
}

}  // namespace

std::string read_text_file(const fs::path& path, const std::string& what) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw ConfigError(fmt::format("cannot read {} {}: {}", what, path.string(), strerror(errno)));
  if (fs::is_directory(path))
    throw ConfigError(fmt::format("{} {} is a folder", what, path.string()));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw ConfigError(fmt::format("cannot read {} {}", what, path.string()));
  return text;
}

void replace_text_file(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  const bool is_special = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
  if (is_special) return write_through(path, text);
  write_beside_and_rename(target_of(path), text);
}

}  // namespace strata
