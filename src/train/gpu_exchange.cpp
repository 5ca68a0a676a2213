#include "strata/train/gpu_exchange.hpp"

#include <utility>

namespace strata {

std::unique_ptr<NcclJob> start_nccl(std::span<const PlannedRun> planned) {
  const PlannedRun& first = planned.front();
  if (first.device == nullptr || first.program.world == 1) return nullptr;
  return NcclJob::start(first.program.world);
}

GpuExchange::~GpuExchange() {
  if (nccl_ == nullptr) return;
  for (RankLinks& links : ranks_) links.data.reset();
}

void GpuExchange::join(RankLinks& links, PlannedRun& run) {
  if (nccl_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    devices_.push_back(run.device);
  }
  NcclRankOptions options;
  options.staging = run.staging;
  options.sum = std::move(run.device_sum);
  options.timeout_s = timeout_s_;
  nccl_->join(links, *run.device, options);
}

}  // namespace strata
