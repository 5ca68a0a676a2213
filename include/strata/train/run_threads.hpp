#pragma once
// The threads that compute and update in one rank of a run: how many, on which NUMA nodes, bound to
// which cores, and what the log says of it. The pools belong to the kernels, which ask nothing;
// whoever makes them hands them what this says (never OMP_NUM_THREADS).
//
// Thread contract: made by one thread; after that from any, which is how pools and lanes bind
// themselves.

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strata/kernels/kernels.hpp"
#include "strata/plan/plan.hpp"
#include "strata/topology/binding.hpp"

namespace strata {

// compute_threads and update_threads of the config; 0: one per core that the pool has.
struct ThreadsWanted {
  int compute = 0, update = 0;
};

class RunThreads {
 public:
  // Binds the calling thread; returns why that was refused, empty when it was not.
  using Bind = std::function<std::string(std::span<const int> cores)>;

  // `cores` is what divide_cores() gave the rank; none for compute: a GPU computes, and there is no
  // such pool.
  RunThreads(const Topology& topology, const RankCores& cores, const ThreadsWanted& wanted,
             Bind bind = bind_current_thread);

  // For the kernels of either lane. The options call back into this object.
  CpuKernelsOptions compute_kernels();
  CpuKernelsOptions update_kernels();
  // Binds the thread of a lane that runs kernels; any other stays free.
  void bind_lane(Lane lane);

  const std::vector<NodeThreads>& compute() const { return compute_.threads; }
  const std::vector<NodeThreads>& update() const { return update_.threads; }
  // Whether it matters which node a page is on.
  bool has_far_memory() const { return has_far_memory_; }

  // Lines for the log: "threads  compute 2 (cores 0-1, node 0), update ...", then a line
  // "warning  ..." for each thing that is not as it should be: too few threads (fewer than 2, or
  // than half of the cores), more than cores, a binding that was refused.
  std::vector<std::string> lines() const;

 private:
  struct Pool {
    std::string name;
    std::size_t num_cores = 0;
    std::vector<NodeThreads> threads;
  };
  CpuKernelsOptions options_of(const Pool& pool);
  void bind(const Pool& pool, std::size_t node);

  // Constant after construction.
  Pool compute_, update_;
  std::string limit_;  // why there are few cores
  bool has_far_memory_;
  Bind bind_;

  mutable std::mutex mutex_;
  std::set<std::string> refusals_;  // guarded by mutex_
};

}  // namespace strata
