#include "io/sim/sim_disk.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace strata {
namespace {

// Calls visit(page index, offset in page, offset in transfer, bytes) for each page of a transfer.
template <typename Visit>
void for_each_page(std::uint64_t page_bytes, std::uint64_t offset, std::uint64_t bytes,
                   Visit visit) {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t in_page = (offset + at) % page_bytes;
    const std::uint64_t part = std::min(page_bytes - in_page, bytes - at);
    visit((offset + at) / page_bytes, in_page, at, part);
    at += part;
  }
}

}  // namespace

bool SimDisk::exists(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return files_.contains(path);
}

void SimDisk::create(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_.try_emplace(path);
}

std::uint64_t SimDisk::size(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return files_.at(path).now.size;
}

std::uint64_t SimDisk::bytes_free() const {
  const std::lock_guard lock(mutex_);
  return capacity_bytes_ - used();
}

std::uint64_t SimDisk::used() const {
  std::uint64_t total = 0;
  for (const auto& [path, file] : files_) total += file.now.size;
  return total;
}

SimDisk::Result SimDisk::read(const std::string& path, std::uint64_t offset,
                              std::span<std::byte> target) const {
  const std::lock_guard lock(mutex_);
  const Contents& contents = files_.at(path).now;
  if (offset >= contents.size) return {};
  const std::uint64_t bytes = std::min<std::uint64_t>(target.size(), contents.size - offset);
  for_each_page(page_bytes, offset, bytes, [&](auto index, auto in_page, auto at, auto part) {
    const auto page = contents.pages.find(index);
    if (page == contents.pages.end()) {
      std::memset(target.data() + at, 0, part);
    } else {
      std::memcpy(target.data() + at, page->second->data() + in_page, part);
    }
  });
  return {bytes, 0};
}

SimDisk::Result SimDisk::write(const std::string& path, std::uint64_t offset,
                               std::span<const std::byte> source) {
  const std::lock_guard lock(mutex_);
  File& file = files_.at(path);
  if (const int error_number = grow(file, offset + source.size())) return {0, error_number};
  for_each_page(
      page_bytes, offset, source.size(), [&](auto index, auto in_page, auto at, auto part) {
        std::memcpy(writable_page(file.now, index).data() + in_page, source.data() + at, part);
      });
  return {source.size(), 0};
}

int SimDisk::grow(const std::string& path, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  return grow(files_.at(path), bytes);
}

int SimDisk::grow(File& file, std::uint64_t bytes) {
  if (bytes <= file.now.size) return 0;
  if (bytes - file.now.size > capacity_bytes_ - used()) return ENOSPC;
  file.now.size = bytes;
  return 0;
}

SimDisk::Page& SimDisk::writable_page(Contents& contents, std::uint64_t index) {
  std::shared_ptr<Page>& page = contents.pages[index];
  if (page == nullptr) {
    page = std::make_shared<Page>();
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  return *page;
}

void SimDisk::sync(const std::string& path) {
  const std::lock_guard lock(mutex_);
  File& file = files_.at(path);
  file.durable = file.now;
}

void SimDisk::cut_power() {
  const std::lock_guard lock(mutex_);
  for (auto& [path, file] : files_) file.now = file.durable;
}

}  // namespace strata
