#pragma once
// The names in a store's part on a drive, and what can be said of a part without opening it.

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "strata/io/file_system.hpp"

namespace strata {

struct PartFiles {
  static constexpr std::string_view lock = "/lock";
  static constexpr std::string_view description = "/store.json";
  static constexpr std::string_view description_new = "/store.json.tmp";
  static constexpr std::string_view tiles = "/tiles";
  // Of the last two committed versions: each commit replaces the older.
  static constexpr std::array<std::string_view, 2> manifests = {"/manifest.0", "/manifest.1"};
  static constexpr std::string_view manifest_new = "/manifest.tmp";
  // There while a versioned store is being made, and gone first from the first drive: a store is
  // made when its first part says so.
  static constexpr std::string_view unfinished = "/unfinished";

  // In the order in which a part is taken apart.
  static constexpr std::array all = {tiles,           manifest_new, manifests[0], manifests[1],
                                     description_new, description,  unfinished,   lock};
};

inline std::string part_file(const std::string& part, std::string_view name) {
  return part + std::string(name);
}

// The lock of a part, unless somebody holds it or has removed the part meanwhile.
std::unique_ptr<FileLock> try_lock_part(FileSystem& files, const std::string& part);
// Whether nothing but our own files is in it.
bool is_ours_alone(const FileSystem& files, const std::string& part);
std::uint64_t part_bytes(const FileSystem& files, const std::string& part);  // allocated
// Removes what can be removed. Only with its lock held.
void remove_part(FileSystem& files, const std::string& part) noexcept;

}  // namespace strata
