#include "io/store/drive_check.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"

namespace strata {

void check_drive_directory(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    throw ConfigError(
        fmt::format("offload.nvme_paths: {} is not a directory{}; create it or name another",
                    directory, error ? " (" + error.message() + ")" : ""));
  }
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

std::string space_advice() {
  return "free some space, add another path, or lower the nvme fractions under offload";
}

}  // namespace strata
