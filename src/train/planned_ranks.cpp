#include "strata/train/planned_ranks.hpp"

#include <future>

#include "strata/topology/topology.hpp"

namespace strata {

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
  check_host_memory(runs.front().plan, job.num_host_ranks(), topology.available_memory_bytes);
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
