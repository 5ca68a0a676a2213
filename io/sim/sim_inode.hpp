#pragma once
// A SimInode is a file of the simulated disk, whatever its name: the bytes that programs see, and
// those that would be found after a power cut. A sector written goes to the second at once or not
// before sync(), as the seed says: so that after a cut any subset of the unsynced sectors is there.
//
// Thread contract: guarded by the SimDisk, but for the lock, which any thread may give back.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/sim/sim_contents.hpp"
#include "strata/core/philox.hpp"

namespace strata {

class SimInode {
 public:
  // With seed 0 nothing survives that was not synced.
  SimInode(std::uint64_t seed, std::uint64_t number, std::uint64_t sector_bytes)
      : keeps_unsynced_(seed != 0), sector_bytes_(sector_bytes), random_(seed, number) {}

  std::uint64_t size() const { return seen_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> target) const { seen_.read(offset, target); }
  void write(std::uint64_t offset, std::span<const std::byte> source);  // grows the file
  void resize(std::uint64_t bytes);
  void sync() { durable_ = seen_; }
  // After a power cut: what was durable is what is seen, and nobody holds the lock.
  void settle();

  // `owner` is any number but 0 that nobody else uses.
  bool try_lock(std::uint64_t owner);
  void unlock(std::uint64_t owner);

 private:
  enum class Fate : std::uint8_t { lost, kept, torn };
  Fate draw_fate();
  bool coin() { return random_.next_u32() % 2 == 0; }
  void keep_sectors(std::uint64_t offset, std::uint64_t bytes);
  void keep_sector(std::uint64_t index);

  const bool keeps_unsynced_;
  const std::uint64_t sector_bytes_;
  PhiloxStream random_;
  SimContents seen_, durable_;
  std::atomic<std::uint64_t> lock_owner_ = 0;
};

}  // namespace strata
