#include "strata/topology/drive.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "topology/direct_alignment.hpp"
#include "topology/drive_description.hpp"

namespace strata {
namespace {

std::string resolved(const std::string& directory) {
  std::error_code failed;
  const auto path = std::filesystem::canonical(directory, failed);
  if (failed) throw SystemError("look at", directory, failed.value());
  if (!std::filesystem::is_directory(path, failed))
    throw SystemError("look at", directory, failed ? failed.value() : ENOTDIR);
  return path;
}

std::optional<std::uint64_t> mount_id_of(const std::string& path) {
  struct statx facts = {};
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_MNT_ID, &facts) != 0) return std::nullopt;
  if ((facts.stx_mask & STATX_MNT_ID) == 0) return std::nullopt;
  return facts.stx_mnt_id;
}

void add_space(DriveFacts& facts, const std::string& path) {
  const FileSystemInfo system = read_file_system(path);
  facts.total_bytes = system.total_bytes;
  facts.free_bytes = system.free_bytes;
  facts.in_memory = system.in_memory;
  if (facts.file_system.empty()) facts.file_system = system.type;
}

}  // namespace

std::optional<std::string> named_twice(const std::vector<std::string>& directories) {
  std::set<std::filesystem::path> seen;
  for (const std::string& directory : directories) {
    std::error_code failed;
    auto path = std::filesystem::weakly_canonical(directory, failed);
    if (!path.has_filename()) path = path.parent_path();  // "/mnt/a/"
    if (!seen.insert(failed ? std::filesystem::path(directory) : path).second) return directory;
  }
  return std::nullopt;
}

DriveFacts read_drive_facts(const std::string& directory) {
  const std::string path = resolved(directory);
  DriveFacts facts = describe_drive(path, mount_id_of(path), SystemRoots{});
  facts.path = directory;
  add_space(facts, path);
  facts.direct_alignment = direct_alignment_in(path);
  return facts;
}

}  // namespace strata
