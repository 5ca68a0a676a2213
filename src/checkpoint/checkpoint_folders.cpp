#include "checkpoint_folders.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint_names.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// What a run that died left behind: the new checkpoint never took the name of the old one, or did.
void clear_replaced(FileSystem& files, const std::string& directory, std::int64_t step) {
  const std::string replaced = directory + "/" + folder_name(step, FolderState::replaced);
  const std::string whole = directory + "/" + folder_name(step, FolderState::whole);
  if (files.exists(whole)) return remove_folder(files, replaced);
  files.rename(replaced, whole);
}

}  // namespace

bool is_checkpoint_folder(const FileSystem& files, const std::string& path) {
  return files.is_directory(path) &&
         files.exists(path + "/" + std::string(checkpoint_manifest_name));
}

void remove_folder(FileSystem& files, const std::string& path) {
  for (const std::string& name : files.list(path)) files.remove(path + "/" + name);
  files.remove(path);
}

void remove_folder_if_there(FileSystem& files, const std::string& path) {
  if (files.is_directory(path)) remove_folder(files, path);
}

void try_remove_folder(FileSystem& files, const std::string& path) noexcept {
  try {
    remove_folder_if_there(files, path);
  } catch (const std::exception&) {
    // clear_unfinished_checkpoints() is for that.
  }
}

std::vector<CheckpointEntry> list_checkpoints(FileSystem& files, const std::string& directory) {
  std::vector<CheckpointEntry> entries;
  if (!files.is_directory(directory)) return entries;
  for (const std::string& name : files.list(directory)) {
    const auto parsed = parse_folder_name(name);
    const std::string path = directory + "/" + name;
    if (parsed && parsed->state == FolderState::whole && is_checkpoint_folder(files, path))
      entries.push_back({parsed->step, path});
  }
  std::ranges::sort(entries, {}, &CheckpointEntry::step);
  return entries;
}

std::vector<std::string> clear_unfinished_checkpoints(FileSystem& files,
                                                      const std::string& directory) {
  std::vector<std::string> cleared;
  if (!files.is_directory(directory)) return cleared;
  for (const std::string& name : files.list(directory)) {
    const auto parsed = parse_folder_name(name);
    if (!parsed || parsed->state == FolderState::whole) continue;
    if (parsed->state == FolderState::replaced)
      clear_replaced(files, directory, parsed->step);
    else
      remove_folder_if_there(files, directory + "/" + name);
    cleared.push_back(name);
  }
  if (!cleared.empty()) files.sync_directory(directory);
  return cleared;
}

void remove_checkpoint(FileSystem& files, const std::string& path) {
  const auto name = parse_folder_name(base_name(path));
  if (!name || name->state != FolderState::whole || !is_checkpoint_folder(files, path))
    throw ConfigError(path + " is no checkpoint of Strata; it was not removed");
  const std::string directory = parent_path(path);
  const std::string removing = directory + "/" + folder_name(name->step, FolderState::removing);
  remove_folder_if_there(files, removing);
  files.rename(path, removing);
  // The name is gone for good before anything of what it stood for is.
  files.sync_directory(directory);
  remove_folder(files, removing);
}

void remove_old_checkpoints(FileSystem& files, const std::string& directory, std::int64_t keep,
                            std::int64_t verified_step, std::optional<std::int64_t> kept_step) {
  ensure(keep >= 1);
  const auto entries = list_checkpoints(files, directory);
  if (std::ranges::find(entries, verified_step, &CheckpointEntry::step) == entries.end()) return;
  std::int64_t surplus = std::ssize(entries) - keep;
  for (const CheckpointEntry& entry : entries) {
    if (surplus <= 0 || entry.step >= verified_step) return;
    if (entry.step == kept_step) continue;
    remove_checkpoint(files, entry.path);
    --surplus;
  }
}

}  // namespace strata
