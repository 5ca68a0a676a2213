#include "io/store/dead_stores.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "io/store/part_files.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::string_view prefix = "strata-scratch-";
constexpr std::string_view old_suffix = ".tiles";  // of the one file per drive of earlier releases

enum class Dead : std::uint8_t { count, remove };

std::uint64_t visit_old_file(FileSystem& files, const std::string& path, Dead what) {
  const std::uint64_t bytes = files.allocated_bytes(path);
  if (what == Dead::remove) files.remove(path);
  return bytes;
}

std::uint64_t visit_store(FileSystem& files, const std::string& path, Dead what) {
  const std::uint64_t bytes = part_bytes(files, path);
  if (what == Dead::remove) remove_part(files, path);
  return bytes;
}

bool is_removable(const FileSystem& files, const std::string& path) {
  return is_ours_alone(files, path) && !files.exists(part_file(path, PartFiles::manifests[0]));
}

// The bytes of something dead; nothing when it lives or is not ours.
std::optional<std::uint64_t> visit(FileSystem& files, const std::string& path, Dead what) {
  if (!files.is_directory(path)) {
    if (!path.ends_with(old_suffix) || !files.exists(path)) return std::nullopt;
    const auto lock = files.try_lock(path);
    return lock ? std::optional(visit_old_file(files, path, what)) : std::nullopt;
  }
  if (!is_removable(files, path)) return std::nullopt;
  const auto lock = try_lock_part(files, path);
  return lock ? std::optional(visit_store(files, path, what)) : std::nullopt;
}

std::optional<std::uint64_t> try_visit(FileSystem& files, const std::string& path, Dead what) {
  try {
    return visit(files, path, what);
  } catch (const SystemError&) {
    return std::nullopt;  // somebody else's, or gone meanwhile
  }
}

DeadScratch visit_all(FileSystem& files, const std::string& directory, Dead what) {
  DeadScratch total;
  if (!files.is_directory(directory)) return total;
  for (const std::string& name : files.list(directory)) {
    if (!is_scratch_name(name)) continue;
    if (const auto bytes = try_visit(files, directory + "/" + name, what))
      total = {total.num_stores + 1, total.bytes + *bytes};
  }
  return total;
}

}  // namespace

std::string scratch_name(const std::string& suffix) {
  return fmt::format("{}{}-{}", prefix, ::getpid(), suffix);
}

bool is_scratch_name(const std::string& name) { return name.starts_with(prefix); }

DeadScratch find_dead_scratch(FileSystem& files, const std::string& directory) {
  return visit_all(files, directory, Dead::count);
}

DeadScratch remove_dead_scratch(FileSystem& files, const std::string& directory) {
  return visit_all(files, directory, Dead::remove);
}

}  // namespace strata
