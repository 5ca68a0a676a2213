#include "io/store/drive_check.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "io/store/scratch_file.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/io/store/tile_store.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

void check_writable(const std::string& directory) {
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return;
  const std::string reason = std::generic_category().message(errno);
  throw ConfigError(fmt::format(
      "offload.nvme_paths: {} cannot be written: {}; name a directory that this user can write",
      directory, reason));
}

}  // namespace

void check_drive_directory(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    throw ConfigError(
        fmt::format("offload.nvme_paths: {} is not a directory{}; create it or name another",
                    directory, error ? " (" + error.message() + ")" : ""));
  }
  check_writable(directory);
  const FileSystemInfo system = read_file_system(directory);
  if (!system.in_memory) return;
  throw ConfigError(
      fmt::format("offload.nvme_paths: {} is on {}, which keeps files in RAM, of which it would "
                  "take away what it is to "
                  "save; name a directory on a drive, or put these bytes on cpu",
                  directory, system.type));
}

void check_drive_space(const std::string& directory, std::uint64_t bytes) {
  const std::uint64_t free_bytes = read_file_system(directory).free_bytes;
  if (bytes <= free_bytes) return;
  throw ConfigError(fmt::format(
      "offload.nvme_paths: {} needs {} ({} bytes) and has {} ({} bytes) free; {}", directory,
      format_bytes(bytes), bytes, format_bytes(free_bytes), free_bytes, space_advice()));
}

std::uint64_t available_drive_bytes(const std::string& directory) {
  return read_file_system(directory).free_bytes + dead_scratch_files(directory).bytes;
}

std::string space_advice() {
  return "free some space, add another path, or lower the nvme fractions under offload";
}

}  // namespace strata
