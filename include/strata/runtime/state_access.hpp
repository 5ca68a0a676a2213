#pragma once
// Reads and writes tiles of model state at their homes, whatever the tier, outside of steps:
// loading, export, tests. Uses the Plan's transfer region and no other memory. The executor must be
// drained. `store` holds the tiles of NvmeTiles(program, plan), in their order. Thread contract:
// one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "strata/device/device.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/memory/tier_memory.hpp"
#include "strata/plan/plan.hpp"
#include "strata/runtime/nvme_tiles.hpp"

namespace strata {

class TileWrites;

class StateAccess {
 public:
  using Fill = std::function<void(std::span<std::byte>)>;

  StateAccess(const Program& program, const Plan& plan, Device& device, TierMemory& memory,
              ShardStore* store);
  ~StateAccess();

  // The tile's bytes as they stand at its home, in host memory, valid until the next call.
  std::span<const std::byte> read(ShardId shard, int tile);
  // Lets `fill` write the tile's bytes, then brings them home.
  void write(ShardId shard, int tile, const Fill& fill);

  // The same, and a drive may have them later: by finish() at the latest, which throws what went
  // wrong. Until then nobody else looks at what was written.
  void write_behind(ShardId shard, int tile, const Fill& fill);
  // Zeros all of their tiles, as write_behind().
  void clear(std::span<const ShardId> shards);
  void finish();

  // That writes have brought to drives, or are bringing there.
  std::uint64_t stored_bytes() const { return stored_bytes_; }
  // Is told of the bytes of each tile that was written, or is on its way.
  void on_write(std::function<void(std::uint64_t)> told) { on_write_ = std::move(told); }

 private:
  const Region& home(ShardId shard, int tile) const;
  std::string describe(ShardId shard, int tile) const;
  std::span<std::byte> take(ShardId shard, int tile);
  void clear(ShardId shard, int tile, std::span<std::byte> zeros);
  void bring_home(ShardId shard, int tile, std::span<std::byte> bytes);

  const Program& program_;
  const Plan& plan_;
  const NvmeTiles nvme_;
  Device& device_;
  TierMemory& memory_;
  ShardStore* store_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<TileWrites> writes_;
  std::function<void(std::uint64_t)> on_write_;
  std::uint64_t stored_bytes_ = 0;
};

}  // namespace strata
