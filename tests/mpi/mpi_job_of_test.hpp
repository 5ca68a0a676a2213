#pragma once
// The MpiJob of a test process, which all its tests share, since MPI starts once in a process.
// Every process runs the same tests in the same order. Thread contract: the main thread.

#include <functional>
#include <memory>

#include "strata/comm/mpi.hpp"

namespace strata::testing {

class MpiJobOfTest {
 public:
  static void start();
  // Jobs that were made to fail keep MpiJob from ending MPI. Here all processes live, so it can
  // be ended after all, as mpirun wants it.
  static void end();
  static const Launch& launch();
};

// Joins the processes and runs `body` for each rank of this one on a thread of its own.
void run_mpi_ranks(int ranks_per_process, const CommOptions& options,
                   const std::function<void(RankLinks)>& body);

}  // namespace strata::testing
