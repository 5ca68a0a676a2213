#pragma once
// The MpiJob of a test process: all tests share it, since MPI starts once in a process.

#include <string>
#include <vector>

#include "strata/comm/mpi.hpp"

namespace strata {

class MpiJobOfTest {
 public:
  static void start();
  // Waits for the ranks of the other processes too. A test that makes ranks fail leaves a job that
  // does not end MPI; as all processes live, it can be ended after all.
  static void end();
  static MpiJob& job();
  static int process();
  static int num_processes();
  // Joins the processes anew: a group that has failed is of no more use.
  static std::unique_ptr<ProcessGroup> join();
};

}  // namespace strata
