#pragma once
// Where things live: the home tier and region of every tile, and rings of slots cut from each tier
// as emission needs them.

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strata/plan/plan.hpp"

namespace strata {

// What a ring of slots is for.
enum class SlotPurpose : std::uint8_t {
  device_weight,
  device_contribution,
  device_activation,
  device_saved,
  device_activation_gradient,
  device_input,
  device_gradient_tile,
  device_weight_tile,
  device_master_tile,
  device_moment1_tile,
  device_moment2_tile,
  device_reduced,     // this rank's slice of a contribution summed over the ranks
  device_new_weight,  // a block's new weight on its way to ranks that each hold all of it
  host_weight,
  host_new_weight,
  host_gradient,
  host_update_gradient,
  host_master,
  host_moment1,
  host_moment2,
  host_contribution,
  host_activation,
  host_saved,
  host_checkpoint,  // state on its way to a checkpoint that is in host memory for nothing else
};

// Equal slots taken round robin, with what each holds now.
class SlotRing {
 public:
  SlotRing(SlotPool pool)
      : pool_(std::move(pool)), holds_(static_cast<std::size_t>(pool_.num_slots)) {}

  // The next slot that holds nothing `in_use`; there is one.
  Region take(TileRef what, std::uint64_t bytes, std::span<const Region> in_use = {});
  // The slot that holds `what`, or nullptr region (bytes 0).
  Region find(TileRef what, std::uint64_t bytes) const;
  void forget(ShardId shard);  // what is held of `shard` is out of date
  void reset();                // a new sequence begins
  const SlotPool& pool() const { return pool_; }

 private:
  Region slot(std::size_t index, std::uint64_t bytes) const;
  SlotPool pool_;
  std::vector<TileRef> holds_;
  std::size_t next_ = 0;
};

class Layout {
 public:
  Layout(const Program& program, const TierLimits& limits, const Policy& policy);

  Tier tier(ShardId shard, int tile) const {
    return tiers_[shard.index()][static_cast<std::size_t>(tile)];
  }
  bool all_on(ShardId shard, Tier tier) const;
  const Region& home(ShardId shard, int tile) const {
    return homes_[shard.index()][static_cast<std::size_t>(tile)];
  }
  bool has_home(ShardId shard) const { return !homes_[shard.index()].empty(); }
  // Homes of a shard whose tiles are all in one memory tier are contiguous: the whole shard as one
  // region.
  Region whole_home(ShardId shard) const;

  // The ring for `purpose` with slots of at least `bytes`; created when first asked for.
  SlotRing& ring(SlotPurpose purpose, std::uint64_t bytes);
  void reset_rings();
  void forget(ShardId shard);

  // Slots serve tiles of all shards of a role: as large as the largest tile.
  std::int64_t most_tile_elements(Role role) const {
    return most_tile_elements_[static_cast<std::size_t>(role)];
  }

  // Fixed regions, created when first asked for.
  Region fixed(const std::string& name, Tier tier, std::uint64_t bytes);

  // Moves what was laid out into `plan`. Throws OutOfMemory when a tier does not fit its limit.
  void finish(Plan& plan);

 private:
  void assign_role(Role role, const TierFractions& fractions);
  void assign_kept(Role role, const TierFractions& fractions);
  void place_kept(Role role, const Sequence& sequence, const std::map<int, Tier>& tier_of_block);
  void place_tiles(ShardId shard);
  void reserve_transfer(Plan& plan);
  void reserve_save_buffers(Plan& plan);
  Region allocate_home(Role role, Tier tier, std::uint64_t bytes);
  Region allocate(Tier tier, std::uint64_t bytes);
  std::uint8_t pick_drive(std::uint64_t bytes);
  int num_slots(SlotPurpose purpose, std::uint64_t bytes) const;
  int most_live(Role role, std::uint64_t bytes) const;
  int whole_block_slots(int wanted, Role role, SlotPurpose purpose, std::uint64_t bytes) const;
  std::uint64_t block_bytes(ShardId shard, SlotPurpose purpose) const;
  void measure_tiles();
  void add_home_usage(Role role, Tier tier, std::uint64_t bytes);
  void add_usage(const std::string& name, Tier tier, std::uint64_t bytes);

  const Program& program_;
  const TierLimits& limits_;
  const Policy& policy_;
  std::array<std::int64_t, num_roles> most_tile_elements_{};
  std::vector<std::vector<Tier>> tiers_;
  std::vector<std::vector<Region>> homes_;
  std::map<std::pair<SlotPurpose, std::uint64_t>, SlotRing> rings_;
  std::map<std::string, Region> fixed_;
  std::vector<Usage> usage_;
  std::uint64_t device_end_ = 0, host_end_ = 0;
  std::vector<std::uint64_t> drive_end_;
};

}  // namespace strata
