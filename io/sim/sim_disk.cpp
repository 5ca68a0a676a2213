#include "io/sim/sim_disk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

constexpr std::uint64_t sector_bytes_min = 512;

class SimLock : public FileLock {
 public:
  SimLock(std::shared_ptr<SimInode> file, std::uint64_t owner)
      : file_(std::move(file)), owner_(owner) {}
  ~SimLock() override { file_->unlock(owner_); }

 private:
  const std::shared_ptr<SimInode> file_;
  const std::uint64_t owner_;
};

}  // namespace

SimDisk::SimDisk(const SimOptions& options)
    : seed_(options.seed),
      sector_bytes_(std::max(options.alignment, sector_bytes_min)),
      capacity_bytes_(options.capacity_bytes),
      power_fails_at_(options.power_fails_at_change) {}

int SimDisk::next_change() { return changes_++ >= power_fails_at_ ? EIO : 0; }

void SimDisk::next_change(std::string_view action, const std::string& path) {
  if (const int error_number = next_change()) throw SystemError(action, path, error_number);
}

std::uint64_t SimDisk::changes() const {
  const Lock lock(mutex_);
  return changes_;
}

void SimDisk::cut_power() {
  const Lock lock(mutex_);
  names_.settle(seed_);
  for (const auto& weak : inodes_) {
    if (const auto file = weak.lock()) file->settle();
  }
  power_fails_at_ = std::numeric_limits<std::uint64_t>::max();
}

void SimDisk::power_fails_at(std::uint64_t change) {
  const Lock lock(mutex_);
  power_fails_at_ = change;
}

std::shared_ptr<SimInode> SimDisk::open(const std::string& path, OpenMode mode) {
  const Lock lock(mutex_);
  if (mode == OpenMode::read_write_create) return open_or_create(path, "open");
  existing_file(path, "open");
  return names_.find(path).file;
}

std::shared_ptr<SimInode> SimDisk::open_or_create(const std::string& path,
                                                  std::string_view action) {
  const SimNode node = names_.find(path);
  if (node.directory != nullptr) throw SystemError(action, path, EISDIR);
  if (node.file != nullptr) return node.file;
  names_.check_can_add(path, action);
  next_change(action, path);
  auto file = std::make_shared<SimInode>(seed_, num_inodes_++, sector_bytes_);
  std::erase_if(inodes_, [](const auto& weak) { return weak.expired(); });
  inodes_.push_back(file);
  names_.add(path, {.file = file, .directory = nullptr});
  return file;
}

SimInode& SimDisk::existing_file(const std::string& path, std::string_view action) const {
  const SimNode node = names_.find(path);
  if (node.empty()) throw SystemError(action, path, ENOENT);
  if (node.file == nullptr) throw SystemError(action, path, EISDIR);
  return *node.file;
}

std::uint64_t SimDisk::size(const SimInode& file) const {
  const Lock lock(mutex_);
  return file.size();
}

std::uint64_t SimDisk::bytes_free() const {
  const Lock lock(mutex_);
  return capacity_bytes_ - std::min(capacity_bytes_, used());
}

std::uint64_t SimDisk::used() const {
  std::uint64_t total = 0;
  names_.for_each_file([&](const SimInode& file) { total += file.size(); });
  return total;
}

bool SimDisk::has_room(const SimInode& file, std::uint64_t bytes) const {
  if (bytes <= file.size()) return true;
  return bytes - file.size() <= capacity_bytes_ - std::min(capacity_bytes_, used());
}

SimDisk::Result SimDisk::read(const SimInode& file, std::uint64_t offset,
                              std::span<std::byte> target) const {
  const Lock lock(mutex_);
  if (offset >= file.size()) return {};
  const std::uint64_t bytes = std::min<std::uint64_t>(target.size(), file.size() - offset);
  file.read(offset, target.first(bytes));
  return {bytes, 0};
}

SimDisk::Result SimDisk::write(SimInode& file, std::uint64_t offset,
                               std::span<const std::byte> source) {
  const Lock lock(mutex_);
  if (const int error_number = next_change()) return {0, error_number};
  if (!has_room(file, offset + source.size())) return {0, ENOSPC};
  file.write(offset, source);
  return {source.size(), 0};
}

int SimDisk::grow(SimInode& file, std::uint64_t bytes) {
  const Lock lock(mutex_);
  if (const int error_number = next_change()) return error_number;
  if (!has_room(file, bytes)) return ENOSPC;
  if (bytes > file.size()) file.resize(bytes);
  return 0;
}

int SimDisk::sync(SimInode& file) {
  const Lock lock(mutex_);
  if (const int error_number = next_change()) return error_number;
  file.sync();
  return 0;
}

bool SimDisk::exists(const std::string& path) const {
  const Lock lock(mutex_);
  return !names_.find(path).empty();
}

bool SimDisk::is_directory(const std::string& path) const {
  const Lock lock(mutex_);
  return names_.find(path).directory != nullptr;
}

std::vector<std::string> SimDisk::list(const std::string& directory) const {
  const Lock lock(mutex_);
  const SimNode node = names_.find(directory);
  if (node.empty()) throw SystemError("list", directory, ENOENT);
  if (node.directory == nullptr) throw SystemError("list", directory, ENOTDIR);
  std::vector<std::string> names;
  for (const auto& [name, entry] : node.directory->seen) names.push_back(name);
  return names;
}

std::uint64_t SimDisk::file_bytes(const std::string& path) const {
  const Lock lock(mutex_);
  return existing_file(path, "inspect").size();
}

std::uint64_t SimDisk::allocated_bytes(const std::string& path) const {
  return align_up(file_bytes(path), sector_bytes_);
}

void SimDisk::make_directory(const std::string& path) {
  const Lock lock(mutex_);
  names_.check_can_add(path, "make directory");
  next_change("make directory", path);
  names_.add(path, {.file = nullptr, .directory = std::make_shared<SimDirectory>()});
}

void SimDisk::rename(const std::string& from, const std::string& to) {
  const Lock lock(mutex_);
  names_.check_can_rename(from, to);
  next_change("rename", from);
  names_.rename(from, to);
}

void SimDisk::remove(const std::string& path) {
  const Lock lock(mutex_);
  names_.check_can_remove(path);
  next_change("remove", path);
  names_.remove(path);
}

void SimDisk::sync_directory(const std::string& path) {
  const Lock lock(mutex_);
  const SimNode node = names_.find(path);
  if (node.empty()) throw SystemError("open directory", path, ENOENT);
  if (node.directory == nullptr) throw SystemError("open directory", path, ENOTDIR);
  next_change("flush directory", path);
  names_.sync(node.directory);
}

std::vector<std::byte> SimDisk::read_file(const std::string& path, std::uint64_t bytes_max) const {
  const Lock lock(mutex_);
  const SimInode& file = existing_file(path, "read");
  if (file.size() > bytes_max) {
    throw SystemError(
        "read", fmt::format("{} ({} bytes; at most {} expected)", path, file.size(), bytes_max),
        EFBIG);
  }
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return bytes;
}

void SimDisk::write_file(const std::string& path, std::span<const std::byte> bytes) {
  const Lock lock(mutex_);
  const auto file = open_or_create(path, "open");
  if (file->size() > 0) {
    next_change("truncate", path);
    file->resize(0);
  }
  next_change("write", path);
  if (!has_room(*file, bytes.size())) throw SystemError("write", path, ENOSPC);
  file->write(0, bytes);
  next_change("flush", path);
  file->sync();
}

std::unique_ptr<FileLock> SimDisk::try_lock(const std::string& path) {
  const Lock lock(mutex_);
  auto file = open_or_create(path, "lock");
  const std::uint64_t owner = ++num_locks_;
  if (!file->try_lock(owner)) return nullptr;
  return std::make_unique<SimLock>(std::move(file), owner);
}

}  // namespace strata
