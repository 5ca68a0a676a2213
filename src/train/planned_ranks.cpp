#include "strata/train/planned_ranks.hpp"

#include <algorithm>
#include <future>

#include "strata/io/store/shard_store.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/forecast.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

// What a rank has beside its tiers while it loads or saves.
std::uint64_t buffer_bytes(const RunConfig& config, Purpose purpose, const PlannedRun& run) {
  if (purpose == Purpose::evaluate) return load_buffer_bytes(run.program);
  const RunFacts facts = run_facts(config, run, 1);
  return std::max(facts.load_bytes, facts.save_bytes);
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

// Side by side: the plan of a large model takes seconds.
std::vector<PlannedRun> plan_ranks(const RunConfig& config, Purpose purpose, Job& job) {
  const Topology topology = read_topology();
  const TierLimits limits = job.agree(rank_limits(config, purpose, topology, job.num_host_ranks()));
  std::vector<std::future<PlannedRun>> plans;
  for (int thread = 0; thread < std::ssize(job.ranks()); ++thread) {
    plans.push_back(std::async(std::launch::async, [&, place = job.place(thread)] {
      return plan_run(config, purpose, topology, place, limits);
    }));
  }
  std::vector<PlannedRun> runs;
  for (auto& plan : plans) runs.push_back(plan.get());
  check_host_memory(runs.front().plan, buffer_bytes(config, purpose, runs.front()),
                    job.num_host_ranks(), topology.available_memory_bytes);
  return runs;
}

void run_planned(Job& job, std::vector<PlannedRun> planned, const SessionOptions& options,
                 const RankWork& work) {
  run_ranks(job.ranks(), [&](RankLinks& links) {
    const auto thread = static_cast<std::size_t>(&links - job.ranks().data());
    SessionOptions own = options;
    own.links = &links;
    work(std::move(planned[thread]), own);
  });
}

}  // namespace strata
