#pragma once
// Reads and writes tiles of model state at their homes, whatever the tier, outside of steps:
// loading, export, tests. Uses the Plan's transfer region and no other memory. The executor must be
// drained. `store` holds the tiles of NvmeTiles(program, plan), in their order. Thread contract:
// one thread.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "strata/device/device.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/memory/tier_memory.hpp"
#include "strata/plan/plan.hpp"
#include "strata/runtime/nvme_tiles.hpp"

namespace strata {

class StateAccess {
 public:
  StateAccess(const Program& program, const Plan& plan, Device& device, TierMemory& memory,
              ShardStore* store);

  // The tile's bytes as they stand at its home, in host memory, valid until the next call.
  std::span<const std::byte> read(ShardId shard, int tile);
  // Lets `fill` write the tile's bytes, then brings them home.
  void write(ShardId shard, int tile, const std::function<void(std::span<std::byte>)>& fill);

 private:
  const Region& home(ShardId shard, int tile) const;
  void transfer(IoOp op, ShardId shard, int tile);

  const Program& program_;
  const Plan& plan_;
  const NvmeTiles nvme_;
  Device& device_;
  TierMemory& memory_;
  ShardStore* store_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace strata
