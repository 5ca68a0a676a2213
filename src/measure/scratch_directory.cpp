#include "scratch_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "strata-nvme-bench-";
// A younger directory may belong to a process that has not locked it yet.
constexpr std::time_t reclaim_age_s = 10;

int open_directory(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

bool lock(int descriptor) {
  int result = -1;
  do {
    result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool is_old(int descriptor) {
  struct stat facts = {};
  return ::fstat(descriptor, &facts) == 0 &&
         facts.st_mtim.tv_sec + reclaim_age_s < std::time(nullptr);
}

void reclaim(const std::string& path) {
  const int descriptor = open_directory(path);
  if (descriptor < 0) return;
  std::error_code ignored;
  if (is_old(descriptor) && lock(descriptor)) fs::remove_all(path, ignored);
  ::close(descriptor);
}

[[noreturn]] void refuse_parent(const std::string& parent, int error_number) {
  throw ConfigError(
      fmt::format("cannot make a scratch directory in {}: {} (errno {}); name a directory that "
                  "exists and that this user can write",
                  parent, std::generic_category().message(error_number), error_number));
}

}  // namespace

ScratchDirectory::ScratchDirectory(const std::string& parent)
    : path_(fmt::format("{}/{}XXXXXX", parent, prefix)) {
  if (::mkdtemp(path_.data()) == nullptr) refuse_parent(parent, errno);
  descriptor_ = open_directory(path_);
  if (descriptor_ >= 0) lock(descriptor_);
}

ScratchDirectory::ScratchDirectory(ScratchDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), descriptor_(std::exchange(other.descriptor_, -1)) {}

ScratchDirectory::~ScratchDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void reclaim_scratch_directories(const std::string& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) reclaim(entry.path());
  }
}

}  // namespace strata
