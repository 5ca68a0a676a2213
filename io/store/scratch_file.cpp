#include "io/store/scratch_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "strata-scratch-";
constexpr std::string_view suffix = ".tiles";

bool is_scratch_name(const std::string& name) {
  return name.starts_with(prefix) && name.ends_with(suffix);
}

bool lock(int descriptor) {
  int result = -1;
  do {
    result = ::flock(descriptor, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

// Whether the open file still has its name: another run may have removed it before it was locked.
bool has_a_name(int descriptor) {
  struct stat facts = {};
  return ::fstat(descriptor, &facts) == 0 && facts.st_nlink > 0;
}

std::uint64_t allocated_bytes(int descriptor) {
  struct stat facts = {};
  if (::fstat(descriptor, &facts) != 0) return 0;
  return static_cast<std::uint64_t>(facts.st_blocks) * 512;
}

enum class Dead : std::uint8_t { count, remove };

void visit(const fs::path& path, Dead what, DeadFiles& total) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  if (lock(descriptor)) {
    const std::uint64_t bytes = allocated_bytes(descriptor);
    const bool counts = what == Dead::count || ::unlink(path.c_str()) == 0;
    if (counts) total = {total.num_files + 1, total.bytes + bytes};
  }
  ::close(descriptor);
}

DeadFiles visit_all(const std::string& directory, Dead what) {
  DeadFiles total;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    if (is_scratch_name(entry.path().filename())) visit(entry.path(), what, total);
  }
  return total;
}

[[noreturn]] void refuse(const std::string& directory, int error_number) {
  throw ConfigError(
      fmt::format("offload.nvme_paths: cannot create a scratch file in {}: {} (errno {}); name a "
                  "directory that "
                  "this user can write",
                  directory, std::generic_category().message(error_number), error_number));
}

}  // namespace

ScratchFile::ScratchFile(const std::string& directory) {
  for (int number = 0; path_.empty(); ++number) {
    const auto name = fmt::format("{}{}-{}{}", prefix, ::getpid(), number, suffix);
    if (try_name(fs::path(directory) / name, directory)) path_ = fs::path(directory) / name;
  }
}

bool ScratchFile::try_name(const std::string& path, const std::string& directory) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor_ < 0 && errno == EEXIST) return false;
  if (descriptor_ < 0) refuse(directory, errno);
  if (lock(descriptor_) && has_a_name(descriptor_)) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

ScratchFile::~ScratchFile() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());
  ::close(descriptor_);
}

DeadFiles dead_scratch_files(const std::string& directory) {
  return visit_all(directory, Dead::count);
}

DeadFiles reclaim_scratch_files(const std::string& directory) {
  return visit_all(directory, Dead::remove);
}

}  // namespace strata
