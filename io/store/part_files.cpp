#include "io/store/part_files.hpp"

#include <algorithm>

#include "strata/core/error.hpp"

namespace strata {
namespace {

void remove_if_there(FileSystem& files, const std::string& path) noexcept {
  try {
    if (files.exists(path)) files.remove(path);
  } catch (const std::exception&) {
    // The next run on this drive tries again.
  }
}

}  // namespace

std::unique_ptr<FileLock> try_lock_part(FileSystem& files, const std::string& part) {
  const std::string path = part_file(part, PartFiles::lock);
  auto lock = files.try_lock(path);
  // Whoever removed the part had its lock until then: what we hold now is a file without a name.
  return lock != nullptr && files.exists(path) ? std::move(lock) : nullptr;
}

bool is_ours_alone(const FileSystem& files, const std::string& part) {
  return std::ranges::all_of(files.list(part), [](const std::string& name) {
    return std::ranges::find(PartFiles::all, "/" + name) != PartFiles::all.end();
  });
}

std::uint64_t part_bytes(const FileSystem& files, const std::string& part) {
  std::uint64_t bytes = 0;
  for (std::string_view name : PartFiles::all) {
    const std::string path = part_file(part, name);
    if (files.exists(path)) bytes += files.allocated_bytes(path);
  }
  return bytes;
}

void remove_part(FileSystem& files, const std::string& part) noexcept {
  for (std::string_view name : PartFiles::all) remove_if_there(files, part_file(part, name));
  remove_if_there(files, part);
}

}  // namespace strata
