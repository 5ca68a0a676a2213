#pragma once
// Ranks over several processes that MPI carries between: hosts without GPUs, started by mpirun.
// Every process holds the same number of ranks, as threads; rank = process x ranks + thread. MPI
// moves bytes alone: sums are ours, in rank order, so the bits are those of make_local_ranks().
//
// A build without MPI has mpi_absent.cpp in its place: has_mpi() is false, and the rest throws
// ConfigError.

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/comm/communicator.hpp"
#include "strata/comm/process_group.hpp"

namespace strata {

bool has_mpi();

// MPI of this process, from start to end; one per process. Destroyed, it waits for the other
// processes' ranks to leave. When the job has failed, MPI is left as it is: what waits for a dead
// process never ends. Thread contract: made and destroyed by the main thread.
//
// A failed job's ranks throw about 0.25 s after the failure, so that what all ranks had come to ends
// well on all. Where MPI holds them longer (it may, over TCP, when a process has died), `on_late` is
// told why the job failed.
class MpiJob {
 public:
  // Throws ConfigError when MPI does not know the processes that the launch tells of.
  static std::unique_ptr<MpiJob> start(const Launch& launch);
  virtual ~MpiJob() = default;
  // For ProcessGroupOptions::share_port: process 0's number, on all processes.
  virtual std::uint16_t share_port(std::uint16_t port) = 0;
  // The ranks of this process, in order. `group` tells of failures, and is told; it and the job
  // outlive the ranks. Called by all processes alike; takes the group's on_failure(). Only as long
  // as the group is there does a process whose ranks are done hear that another's fail.
  virtual std::vector<RankLinks> make_ranks(ProcessGroup& group, int ranks_per_process,
                                            const CommOptions& options) = 0;
};

}  // namespace strata
