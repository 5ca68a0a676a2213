#pragma once
// A DurableRun is one rank's part of a run whose every step is durable: its versioned store, taken
// over from the run before or made new, and the commits.
//
// Thread contract: commit() on the save lane's thread while steps run, the rest on the rank's own
// while none does.

#include <memory>
#include <string>
#include <vector>

#include "strata/io/store/shard_store.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/runtime/nvme_tiles.hpp"
#include "strata/train/durable_state.hpp"
#include "strata/train/planned_run.hpp"
#include "durable_note.hpp"

namespace strata {

// What a plan keeps on NVMe: the tiles that have versions, under names that say what they hold, and
// the others.
struct NvmeSplit {
  std::vector<bool> has_versions;  // by tile, as NvmeTiles has them
  std::vector<StoreTile> state, scratch;
};
NvmeSplit split_nvme_tiles(const PlannedRun& run);

class DurableRun final : public StateCommitter {
 public:
  // `point` outlives it.
  DurableRun(const RunConfig& config, const PlannedRun& run, IoEngine& engine,
             std::vector<StoreTile> tiles, const ResumePoint& point);

  // Whether the state that the run goes on from lies on this rank's drives as this run would have
  // it there.
  bool can_adopt() const;
  // The store at the committed step. All ranks adopt, or all make a new one.
  std::unique_ptr<ShardStore> adopt(Verify verify);
  std::unique_ptr<ShardStore> create(Verify verify);
  bool is_adopted() const { return is_adopted_; }

  // Before the first step: where the run stands, and the micro-batches that a step takes on all
  // ranks. What was made new is committed.
  void begin(ShardStore& store, const RunNote& note, std::int64_t micro_batches_per_step);
  void commit(const StepArgs& args, bool applied) override;

  const StateStores& stores() const { return is_adopted_ ? point_.durable->stores : point_.stores; }

 private:
  const bool stops_at_bad_steps_;  // whose updates are not applied
  const std::string directory_;    // of the run's output
  const int rank_;
  IoEngine& engine_;
  const std::vector<StoreTile> tiles_;
  const ResumePoint& point_;
  bool is_adopted_ = false;
  ShardStore* store_ = nullptr;
  std::int64_t micro_batches_per_step_ = 0;
  DurableNote note_;
};

}  // namespace strata
