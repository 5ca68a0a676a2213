#include "io/store/named_stores.hpp"

#include <vector>

#include "io/store/part_files.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

bool is_part(const FileSystem& files, const std::string& path) {
  try {
    return files.is_directory(path) && is_ours_alone(files, path);
  } catch (const SystemError&) {
    return false;  // Gone meanwhile, by another rank's hand, or somebody else's.
  }
}

// Of folders with nothing but a store's files in them.
std::vector<std::string> parts_in(const FileSystem& files, const std::string& directory,
                                  const std::string& prefix) {
  std::vector<std::string> parts;
  if (!files.is_directory(directory)) return parts;
  for (const std::string& name : files.list(directory)) {
    const std::string path = directory + "/" + name;
    if (name.starts_with(prefix) && is_part(files, path)) parts.push_back(path);
  }
  return parts;
}

bool is_durable(FileSystem& files, const std::string& directory) {
  try {
    if (files.is_directory(directory)) files.sync_directory(directory);
    return true;
  } catch (const SystemError&) {
    return false;
  }
}

}  // namespace

std::uint64_t named_store_bytes(const FileSystem& files, const std::string& directory,
                                const std::string& prefix) {
  std::uint64_t bytes = 0;
  for (const std::string& part : parts_in(files, directory, prefix))
    bytes += part_bytes(files, part);
  return bytes;
}

bool remove_named_stores(FileSystem& files, const std::string& directory,
                         const std::string& prefix) {
  for (const std::string& part : parts_in(files, directory, prefix)) {
    try {
      if (const auto lock = try_lock_part(files, part)) remove_part(files, part);
    } catch (const SystemError&) {
      // Gone meanwhile, or somebody else's.
    }
  }
  return is_durable(files, directory) && parts_in(files, directory, prefix).empty();
}

}  // namespace strata
