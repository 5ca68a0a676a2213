#include "bench_site.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/drive.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

constexpr std::uint64_t margin_min = 64 * MiB;

void check_directory(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    throw ConfigError(
        fmt::format("{} is not a directory: name one on the drive to be measured", path));
  }
  if (::access(path.c_str(), W_OK | X_OK) == 0) return;
  throw ConfigError(
      fmt::format("{} cannot be written: {}; the drive is measured with files, so name a directory "
                  "that this user can write",
                  path, std::generic_category().message(errno)));
}

void check_is_drive(const std::string& path) {
  const FileSystemInfo system = read_file_system(path);
  if (!system.in_memory) return;
  throw ConfigError(fmt::format(
      "{} is on {}, which keeps files in RAM: this would measure memory and call it a drive; name "
      "a directory on a drive",
      path, system.type));
}

dev_t device_of(const std::string& path) {
  struct stat facts = {};
  check(::stat(path.c_str(), &facts), "look at", path);
  return facts.st_dev;
}

// File systems slow down, and others fail, when the last byte is taken.
std::uint64_t with_margin(std::uint64_t bytes) { return bytes + std::max(bytes / 20, margin_min); }

void check_room(const std::string& path, std::uint64_t bytes) {
  const std::uint64_t needed = with_margin(bytes), free = read_file_system(path).free_bytes;
  if (needed <= free) return;
  throw ConfigError(
      fmt::format("{} has too little room: {} ({} bytes) are needed for the scratch files and a "
                  "margin, {} ({} bytes) are free; ask for a smaller size or free some space",
                  path, format_bytes(needed), needed, format_bytes(free), free));
}

void check_drives(const std::vector<std::string>& paths) {
  if (const auto twice = named_twice(paths))
    throw ConfigError(fmt::format("{} is named twice: name each drive once", *twice));
  for (const std::string& path : paths) {
    check_directory(path);
    check_is_drive(path);
  }
}

}  // namespace

void check_bench_paths(const std::vector<std::string>& paths, std::uint64_t bytes) {
  check_drives(paths);
  std::map<dev_t, std::uint64_t> needed;
  for (const std::string& path : paths) check_room(path, needed[device_of(path)] += bytes);
}

std::vector<BenchSite> make_bench_sites(const std::vector<std::string>& paths,
                                        std::uint64_t bytes) {
  check_drives(paths);
  std::vector<std::unique_ptr<DriveOwner>> owners;
  for (const std::string& path : paths)
    owners.push_back(DriveOwner::take(posix_file_system(), {&path, 1}, DriveUse::benchmark));
  for (const std::string& path : paths) reclaim_scratch_directories(path);
  check_bench_paths(paths, bytes);
  std::vector<BenchSite> sites;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    ScratchDirectory directory(paths[i]);
    const std::string source = directory.file("source"), target = directory.file("target");
    sites.push_back({paths[i], std::move(owners[i]), std::move(directory), source, target});
  }
  return sites;
}

}  // namespace strata
