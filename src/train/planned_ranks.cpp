#include "strata/train/planned_ranks.hpp"

#include <algorithm>
#include <future>

#include "strata/io/store/shard_store.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/forecast.hpp"
#include "strata/train/gpu_exchange.hpp"

namespace strata {
namespace {

std::vector<std::uint64_t> free_bytes(const std::vector<RankDevice>& devices) {
  std::vector<std::uint64_t> bytes;
  for (const RankDevice& rank : devices) bytes.push_back(rank.device->free_bytes());
  return bytes;
}

}  // namespace

std::unique_ptr<DriveOwner> own_drives(const RunConfig& config, Purpose purpose, Job& job) {
  std::unique_ptr<DriveOwner> owner;
  const auto& paths = config.offload.nvme_paths;
  if (job.is_first_on_host() && uses_drives(config, purpose)) {
    for (const std::string& path : paths) check_drive_directory(path);
    owner = DriveOwner::take(posix_file_system(), paths, DriveUse::run);
  }
  job.check_alike("offload.nvme_paths", "been taken");  // Before anybody's tiles are made there.
  return owner;
}

DeviceChoice choose_devices(const RunConfig& config, Job& job) {
  DeviceChoice choice = choose_device_here(config, job.num_host_ranks());
  job.check_alike("device", choice.uses_gpus() ? "GPUs" : "the host");
  return choice;
}

// Side by side: the plan of a large model takes seconds.
std::vector<PlannedRun> plan_ranks(const RunConfig& config, Purpose purpose, Job& job,
                                   const DeviceChoice& devices) {
  const Topology topology = read_topology();
  std::vector<RankDevice> opened;
  for (int thread = 0; thread < std::ssize(job.ranks()); ++thread)
    opened.push_back(open_rank_device(devices, job.place(thread).host_rank, config.world));
  std::optional<std::uint64_t> device_bytes;
  if (devices.uses_gpus()) device_bytes = device_limit(config, free_bytes(opened));
  const TierLimits limits =
      job.agree(rank_limits(config, purpose, topology, job.num_host_ranks(), device_bytes));
  std::vector<std::future<PlannedRun>> plans;
  for (int thread = 0; thread < std::ssize(job.ranks()); ++thread) {
    plans.push_back(std::async(
        std::launch::async,
        [&, place = job.place(thread), &device = opened[static_cast<std::size_t>(thread)]] {
          return plan_run(config, purpose, topology, place, limits, std::move(device));
        }));
  }
  std::vector<PlannedRun> runs;
  try {
    for (auto& plan : plans) runs.push_back(plan.get());
  } catch (const TierOverflow& refusal) {
    throw advised_here(refusal, config, topology.available_memory_bytes, job.num_host_ranks());
  }
  check_host_memory(runs.front(), job.num_host_ranks(), topology.available_memory_bytes);
  for (const PlannedRun& run : runs) check_device_memory(run);
  return runs;
}

void run_planned(const RunConfig& config, Job& job, std::vector<PlannedRun> planned,
                 const SessionOptions& options, const RankWork& work) {
  GpuExchange exchange(job.ranks(), start_nccl(planned), config.ddp_timeout);
  run_ranks(job.ranks(), [&](RankLinks& links) {
    const auto thread = static_cast<std::size_t>(&links - job.ranks().data());
    exchange.join(links, planned[thread]);
    SessionOptions own = options;
    own.links = &links;
    work(std::move(planned[thread]), own);
  });
}

}  // namespace strata
