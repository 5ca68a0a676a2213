#include "simt/shadow.hpp"

namespace strata::simt {

bool ShadowCell::ordered_after(const Toucher& by, std::uint32_t thread, std::uint32_t stamp,
                               Readers readers) const {
  if (stamp < by.launch_time) return true;
  if (thread == by.thread && readers == one) return true;
  if (readers == blocks || thread / by.block_threads != by.block()) return false;
  if (stamp < by.block_time) return true;
  return readers != warps && thread / 32 == by.warp() && stamp < by.warp_time;
}

bool ShadowCell::may_follow_write(const Toucher& by, Touch how) const {
  return (is_atomic_ && how == Touch::atomic) || ordered_after(by, writer_, write_stamp_, one);
}

bool ShadowCell::may_follow_reads(const Toucher& by) const {
  return ordered_after(by, reader_, read_stamp_, readers_);
}

void ShadowCell::note_read(const Toucher& by) {
  const bool is_first = may_follow_reads(by);
  if (is_first) {
    readers_ = one;
  } else if (reader_ / by.block_threads != by.block() || readers_ == blocks) {
    readers_ = blocks;
  } else if (reader_ / 32 != by.warp() || readers_ == warps) {
    readers_ = warps;
  } else {
    readers_ = lanes;
  }
  reader_ = by.thread;
  read_stamp_ = by.now;
}

bool ShadowCell::touch(const Toucher& by, Touch how) {
  if (!may_follow_write(by, how)) return false;
  if (how == Touch::read) {
    note_read(by);
    return true;
  }
  if (!may_follow_reads(by)) return false;
  write_stamp_ = by.now;
  writer_ = by.thread;
  is_atomic_ = how == Touch::atomic;
  return true;
}

ShadowCell& GlobalShadow::at(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t page = number / page_cells;
  if (last_ == nullptr || page != last_number_) {
    Page& found = pages_[page];
    if (found == nullptr) found = std::make_unique<ShadowCell[]>(page_cells);
    last_ = found.get();
    last_number_ = page;
  }
  return last_[number % page_cells];
}

void GlobalShadow::trim() {
  if (pages_.size() <= pages_max) return;
  pages_.clear();
  last_ = nullptr;
}

}  // namespace strata::simt
