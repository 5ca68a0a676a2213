#pragma once
// A Job is what the ranks of a run share before any of them has a plan: how this process was
// started, the other processes, the links among all ranks and each rank's place. Thread contract:
// the main thread, but for what RankLinks allow.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/comm/mpi.hpp"
#include "strata/comm/process_group.hpp"
#include "strata/plan/plan.hpp"
#include "strata/train/ranks.hpp"

namespace strata {

struct JobOptions {
  int ranks = 1;          // of each process
  std::string agreement;  // what must be alike in all processes
  CommOptions comm;
};

class Job {
 public:
  // Joins the other processes, if there are any. Throws ConfigError when they cannot be one job, or
  // when this build has nothing that carries between them.
  Job(const Launch& launch, const JobOptions& options);
  ~Job();

  int world() const { return launch_.num_processes * ranks_per_process_; }
  bool leads() const { return launch_.process == 0; }  // rank 0 is a thread of this process
  // What a host's processes share is taken and checked by one of them.
  bool is_first_on_host() const { return launch_.local_process == 0; }
  int num_host_ranks() const { return launch_.num_local_processes * ranks_per_process_; }
  std::span<RankLinks> ranks() { return ranks_; }
  RankPlace place(int thread) const;  // of the ranks of this process
  // "2 in 2 processes of 1 (Open MPI), joined by MPI"; for the log.
  std::string describe() const;

  // The least that any process gives: plans of all ranks must be made with the same limits. Every
  // process must call it.
  TierLimits agree(const TierLimits& limits);
  // Gives every process's text, by process. Every process must call it.
  std::vector<std::string> exchange(const std::string& own);
  // Throws Error unless all processes say the same of `what`. Every process must call it.
  void check_alike(const std::string& what, const std::string& own);
  // Calls `work`; what it throws is told to the other processes, which end with it.
  int guard(const std::function<int()>& work);

 private:
  const Launch launch_;
  const int ranks_per_process_;
  std::unique_ptr<MpiJob> mpi_;          // null when alone
  std::unique_ptr<ProcessGroup> group_;  // likewise
  std::vector<RankLinks> ranks_;
};

}  // namespace strata
