#include "staged_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view staged_infix = ".tmp-";
constexpr const char* lock_name = ".strata-unfinished";

fs::path clean(const fs::path& target) {
  const fs::path absolute = fs::absolute(target).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

[[noreturn]] void refuse_existing(const fs::path& target) {
  throw ConfigError(target.string() + " exists already; choose another folder or remove it first");
}

void check_space(const fs::path& parent, std::uint64_t bytes) {
  const std::uint64_t room = free_bytes(parent);
  if (bytes <= room) return;
  throw SystemError(
      "write a model folder",
      fmt::format("in {}: it needs {} ({} bytes), {} ({} bytes) are free", parent.string(),
                  format_bytes(bytes), bytes, format_bytes(room), room),
      ENOSPC);
}

// Whether a name beside `target` is one of its own, or of where its contents go when that is taken
// meanwhile: "export-2".
bool is_staged_for(const fs::path& target, const std::string& name) {
  const std::string own = target.filename().string(), of = staged_target(name);
  if (!of.starts_with(own)) return false;
  const std::string rest = of.substr(own.size());
  return rest.empty() || (rest.size() > 1 && rest[0] == '-' &&
                          rest.find_first_not_of("0123456789", 1) == std::string::npos);
}

// Sorted; none where they cannot be listed.
std::vector<std::string> names_in(const fs::path& folder) {
  try {
    return posix_file_system().list(folder);
  } catch (const SystemError&) {
    return {};
  }
}

// Null: a live process has it. Throws SystemError where there is none.
std::unique_ptr<FileLock> lock_of(const fs::path& folder) {
  if (!fs::is_directory(fs::symlink_status(folder)) ||
      !fs::is_regular_file(fs::symlink_status(folder / lock_name)))
    throw SystemError("look for", (folder / lock_name).string(), ENOENT);
  return posix_file_system().try_lock(folder / lock_name);
}

// Not where a link may lead, nor what has nothing to hold: whose that is cannot be told.
bool try_remove_dead(const fs::path& folder) {
  try {
    const auto lock = lock_of(folder);
    return lock != nullptr && fs::remove_all(folder) > 0;
  } catch (const std::exception&) {
    return false;  // Somebody else's, or gone meanwhile.
  }
}

// Not rename(2) alone: that would replace an empty folder made meanwhile.
void rename_to_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return;
  if (errno == EEXIST) refuse_existing(to);
  const bool is_unsupported = errno == EINVAL || errno == ENOSYS;
  if (!is_unsupported) throw SystemError("rename to", to.string(), errno);
  check(::rename(from.c_str(), to.c_str()), "rename to", to.string());
}

// Digits from `begin` on; where they end.
std::size_t skip_digits(const std::string& text, std::size_t begin) {
  return std::min(text.find_first_not_of("0123456789", begin), text.size());
}

}  // namespace

std::string staged_target(const std::string& name) {
  const std::size_t dot = name.rfind(staged_infix);
  if (dot == std::string::npos) return "";
  const std::size_t begin = dot + staged_infix.size();
  std::size_t end = skip_digits(name, begin);
  if (end == begin) return "";
  if (end + 1 < name.size() && name[end] == '.') end = skip_digits(name, end + 1);
  return end == name.size() ? name.substr(0, dot) : "";
}

void check_staging(const fs::path& target, std::uint64_t bytes) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(clean(target), error))) refuse_existing(clean(target));
  const fs::path parent = clean(target).parent_path();
  fs::create_directories(parent, error);
  if (error) throw SystemError("create directory", parent.string(), error.value());
  check(::access(parent.c_str(), W_OK | X_OK), "write to directory", parent.string());
  check_space(parent, bytes);
}

bool is_being_staged(const fs::path& folder) {
  try {
    return lock_of(folder) == nullptr;
  } catch (const std::exception&) {
    return false;
  }
}

std::vector<fs::path> clear_dead_staging(const fs::path& target) {
  const fs::path whole = clean(target), parent = whole.parent_path();
  std::vector<fs::path> cleared;
  for (const std::string& name : names_in(parent))
    if (is_staged_for(whole, name) && try_remove_dead(parent / name))
      cleared.push_back(parent / name);
  return cleared;
}

StagedFolder::StagedFolder(const fs::path& target, std::uint64_t bytes) : target_(clean(target)) {
  clear_dead_staging(target_);
  check_staging(target_, bytes);
  make();
}

// A folder left behind by a killed process with this id is somebody's to look at, so it is stepped
// over.
void StagedFolder::make() {
  constexpr int attempts_max = 100;
  const std::string base = fmt::format("{}{}{}", target_.string(), staged_infix, ::getpid());
  for (int attempt = 0; attempt < attempts_max; ++attempt)
    if (try_make(attempt == 0 ? base : fmt::format("{}.{}", base, attempt))) return;
  throw SystemError("create directory", base, EEXIST);
}

// False: the name is taken, or somebody took the folder for a dead one before it was locked.
bool StagedFolder::try_make(const fs::path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return false;
    throw SystemError("create directory", path.string(), errno);
  }
  path_ = path;
  try {
    lock_ = posix_file_system().try_lock(path / lock_name);
  } catch (const SystemError& error) {
    return error.error_number() != ENOENT;  // Without: nobody will take it away.
  }
  return lock_ != nullptr;
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(path_, ignored);
}

void StagedFolder::commit() {
  sync_directory(path_);
  rename_to_new(path_, target_);
  committed_ = true;
  std::error_code ignored;
  fs::remove(target_ / lock_name, ignored);
  sync_directory(target_.parent_path());
}

}  // namespace strata
