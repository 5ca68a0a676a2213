#include "io/store/drive_check.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "io/store/dead_stores.hpp"
#include "strata/core/bytes.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

constexpr std::string_view space_advice =
    "free some space, add another path, or lower the nvme fractions under offload";

[[noreturn]] void throw_no_directory(const std::string& directory) {
  throw ConfigError(fmt::format(
      "offload.nvme_paths: {} is not a directory; create it or name another", directory));
}

void check_writable(const std::string& directory) {
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return;
  const std::string reason = std::generic_category().message(errno);
  throw ConfigError(fmt::format(
      "offload.nvme_paths: {} cannot be written: {}; name a directory that this user can write",
      directory, reason));
}

}  // namespace

void check_drive_directory(const std::string& directory) {
  if (!posix_file_system().is_directory(directory)) throw_no_directory(directory);
  check_writable(directory);
  const FileSystemInfo system = read_file_system(directory);
  if (!system.in_memory) return;
  throw ConfigError(
      fmt::format("offload.nvme_paths: {} is on {}, which keeps files in RAM, of which it would "
                  "take away what it is to save; name a directory on a drive, or put these bytes "
                  "on cpu",
                  directory, system.type));
}

void check_store_directory(const FileSystem& files, const std::string& directory) {
  if (&files == &posix_file_system()) check_drive_directory(directory);
}

void check_drive_space(const FileSystem& files, const std::string& directory, std::uint64_t bytes) {
  const std::uint64_t free_bytes = files.free_bytes(directory);
  if (bytes <= free_bytes) return;
  throw ConfigError(fmt::format(
      "offload.nvme_paths: {} needs {} ({} bytes) and has {} ({} bytes) free; {}", directory,
      format_bytes(bytes), bytes, format_bytes(free_bytes), free_bytes, space_advice));
}

void rethrow_as_config_error(const SystemError& error, const std::string& directory) {
  switch (error.error_number()) {
    case ENOENT:
    case ENOTDIR:
      throw_no_directory(directory);
    case EACCES:
    case EPERM:
    case EROFS:
      throw ConfigError(
          fmt::format("offload.nvme_paths: cannot create a store in {}: {}; name a directory that "
                      "this user can write",
                      directory, error.what()));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      throw ConfigError(
          fmt::format("offload.nvme_paths: {}: {}; {}", directory, error.what(), space_advice));
    default:
      throw;
  }
}

std::uint64_t available_drive_bytes(const std::string& directory) {
  FileSystem& files = posix_file_system();
  return files.free_bytes(directory) + find_dead_scratch(files, directory).bytes;
}

}  // namespace strata
