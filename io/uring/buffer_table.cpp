#include "io/uring/buffer_table.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "io/common/piece.hpp"
#include "strata/core/bytes.hpp"

namespace strata {
namespace {

std::string lock_limit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : format_bytes(limit.rlim_cur);
}

}  // namespace

BufferTable::BufferTable(Ring& ring) : ring_(ring) {
  if (!ring.has_buffer_table()) note_ = "the kernel has no buffer table (older than 5.19)";
  if (!ring.has_buffer_table()) return;
  for (unsigned index = Ring::num_buffers_max; index > 0; --index) free_.push_back(index - 1);
}

void BufferTable::add(std::span<std::byte> memory) {
  if (!ring_.has_buffer_table()) return;
  remove(memory);
  while (!memory.empty()) {
    const auto part = memory.first(std::min<std::size_t>(memory.size(), Ring::buffer_bytes_max));
    if (!add_part(part)) return;
    memory = memory.subspan(part.size());
  }
}

bool BufferTable::add_part(std::span<std::byte> memory) {
  const int error_number = free_.empty() ? ENOSPC : ring_.set_buffer(free_.back(), memory);
  if (error_number != 0) {
    note_failure(error_number, memory.size());
    return false;
  }
  entries_[memory.data() + memory.size()] = {memory, free_.back()};
  free_.pop_back();
  return true;
}

void BufferTable::note_failure(int error_number, std::uint64_t bytes) {
  note_ = fmt::format("{} not registered: {}", format_bytes(bytes), errno_text(error_number));
  if (error_number != ENOMEM && error_number != EPERM) return;
  note_ += fmt::format("; RLIMIT_MEMLOCK is {}, raise it (ulimit -l)", lock_limit());
}

void BufferTable::remove(std::span<const std::byte> memory) {
  auto entry = entries_.upper_bound(memory.data());
  while (entry != entries_.end() && entry->second.memory.data() < memory.data() + memory.size()) {
    ring_.set_buffer(entry->second.index, {});
    free_.push_back(entry->second.index);
    entry = entries_.erase(entry);
  }
}

int BufferTable::find(const std::byte* data, std::uint64_t bytes) const {
  const auto entry = entries_.upper_bound(data);
  if (entry == entries_.end() || entry->second.memory.data() > data) return -1;
  return data + bytes <= entry->first ? static_cast<int>(entry->second.index) : -1;
}

std::string BufferTable::describe() const {
  std::uint64_t bytes = 0;
  for (const auto& [end, entry] : entries_) bytes += entry.memory.size();
  std::string text = entries_.empty() ? "no registered buffers"
                                      : fmt::format("{} registered buffers ({})", entries_.size(),
                                                    format_bytes(bytes));
  return note_.empty() ? text : text + " (" + note_ + ")";
}

}  // namespace strata
