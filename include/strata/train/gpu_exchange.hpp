#pragma once
// NCCL between the GPUs of a run's ranks that live in this process. Without GPUs, or for one rank,
// there is none, and values go as the job's links carry them.
//
// Outlives the ranks' sessions. Thread contract: made and destroyed by the thread that runs the
// ranks; join() by each rank's own.

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "strata/comm/nccl.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// Null where the run needs none. Throws ConfigError where NCCL is missing.
std::unique_ptr<NcclJob> start_nccl(std::span<const PlannedRun> planned);

class GpuExchange {
 public:
  // `ranks` outlive this. `timeout_s` is for NCCL to carry out what all ranks have come to.
  GpuExchange(std::span<RankLinks> ranks, std::unique_ptr<NcclJob> nccl, double timeout_s)
      : ranks_(ranks), timeout_s_(timeout_s), nccl_(std::move(nccl)) {}
  // Ends the data lines of ranks that have joined, then NCCL, then their devices.
  ~GpuExchange();
  GpuExchange(const GpuExchange&) = delete;
  GpuExchange& operator=(const GpuExchange&) = delete;

  // From now on the GPUs exchange what goes over `links.data`. All ranks call it, before their
  // sessions. What fails here fails the job.
  void join(RankLinks& links, PlannedRun& run);

 private:
  const std::span<RankLinks> ranks_;
  const double timeout_s_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Device>> devices_;  // guarded by mutex_ while ranks join
  std::unique_ptr<NcclJob> nccl_;
};

}  // namespace strata
