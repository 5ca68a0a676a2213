#pragma once
// The model state of one of several ranks, planned and reserved but neither loaded nor run.

#include <algorithm>
#include <memory>
#include <span>

#include "sim/tiny_training.hpp"
#include "strata/comm/communicator.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/memory/tier_memory.hpp"
#include "strata/runtime/nvme_tiles.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"
#include "support/policies.hpp"

namespace strata::testing {

class RankState {
 public:
  // NVMe is a simulated disk. Memory holds garbage, as that of slots that were in use does.
  RankState(const RunConfig& config, int rank, Purpose purpose = Purpose::train)
      : run_(plan_run(config, purpose, Topology{}, {rank, config.world, rank, config.world},
                      roomy_limits(static_cast<int>(config.offload.nvme_paths.size())))),
        device_(make_host_device({})),
        engine_(make_sim_engine_for(config.offload)),
        store_(make_store(config)),
        memory_(*device_, run_.plan.tier_bytes[0], run_.plan.tier_bytes[1]),
        state_(run_.program, run_.plan, *device_, memory_, store_.get()) {
    for (const Slab* slab : {&memory_.device_slab(), &memory_.host_slab()})
      std::ranges::fill(std::span(slab->data(), slab->bytes()), std::byte{0xee});
  }

  const PlannedRun& run() const { return run_; }
  const Program& program() const { return run_.program; }
  StateAccess& state() { return state_; }

 private:
  std::unique_ptr<ShardStore> make_store(const RunConfig& config) {
    StoreSpec spec;
    spec.directories = config.offload.nvme_paths;
    spec.tiles = NvmeTiles(run_.program, run_.plan).tiles();
    return ShardStore::create(*engine_, spec, {});
  }

  PlannedRun run_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<IoEngine> engine_;
  std::unique_ptr<ShardStore> store_;
  TierMemory memory_;
  StateAccess state_;
};

}  // namespace strata::testing
