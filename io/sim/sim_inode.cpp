#include "io/sim/sim_inode.hpp"

#include <algorithm>
#include <vector>

namespace strata {

void SimInode::write(std::uint64_t offset, std::span<const std::byte> source) {
  const std::uint64_t end = offset + source.size();
  if (end > seen_.size()) resize(end);
  seen_.write(offset, source);
  if (keeps_unsynced_) keep_sectors(offset, source.size());
}

void SimInode::resize(std::uint64_t bytes) {
  seen_.resize(bytes);
  if (keeps_unsynced_ && coin()) durable_.resize(bytes);
}

void SimInode::settle() {
  durable_.resize(durable_.size());  // sectors may have got there before the length did
  seen_ = durable_;
  lock_owner_ = 0;
}

// Whole writes that are lost or kept while others are not find more than torn ones do.
SimInode::Fate SimInode::draw_fate() {
  const auto drawn = random_.next_below(4);
  if (drawn == 0) return Fate::lost;
  return drawn == 1 ? Fate::kept : Fate::torn;
}

void SimInode::keep_sectors(std::uint64_t offset, std::uint64_t bytes) {
  const Fate fate = draw_fate();
  if (fate == Fate::lost) return;
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t index = offset / sector_bytes_; index * sector_bytes_ < end; ++index) {
    if (fate == Fate::kept || coin()) keep_sector(index);
  }
}

void SimInode::keep_sector(std::uint64_t index) {
  std::vector<std::byte> sector(sector_bytes_);
  seen_.read(index * sector_bytes_, sector);
  durable_.write(index * sector_bytes_, sector);
}

bool SimInode::try_lock(std::uint64_t owner) {
  std::uint64_t nobody = 0;
  return lock_owner_.compare_exchange_strong(nobody, owner);
}

void SimInode::unlock(std::uint64_t owner) {
  lock_owner_.compare_exchange_strong(owner, 0);  // a power cut may have given it to another
}

}  // namespace strata
