#pragma once
// How this process was started: alone, or as one of several by torchrun, mpirun or Slurm, told by
// the environment. A value; no thread contract.

#include <cstdint>
#include <functional>
#include <string>

namespace strata {

struct Launch {
  int process = 0, num_processes = 1;
  int local_process = 0, num_local_processes = 1;  // on this host
  std::string source = {};            // "torchrun", "Open MPI", "Slurm"; empty: started alone
  std::string address = "127.0.0.1";  // where process 0 is to be reached: MASTER_ADDR
  std::uint16_t port = 0;             // MASTER_PORT; 0: not told
  std::string job = {};  // what the launcher calls it, on all processes; empty: not told

  bool is_alone() const { return num_processes == 1; }
};

// The value of an environment variable, or nullptr.
using Environment = std::function<const char*(const char* name)>;

// RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE (torchrun's words, which count processes here),
// else OMPI_COMM_WORLD_*, else Slurm's of a step (srun; a batch script alone is no step).
// MASTER_ADDR and MASTER_PORT are honoured in all; under Slurm the address is else the step's first
// host. An empty variable counts as none. Throws ConfigError, naming the variables, when they
// contradict each other, are incomplete or no numbers.
//
// Without LOCAL_WORLD_SIZE all processes are taken to be on this host, and without LOCAL_RANK too
// they are numbered as RANK says: each then takes too small a share of the host rather than too
// large a one. Under torchrun MASTER_PORT is often its own store's
// (TORCHELASTIC_USE_AGENT_STORE=True); then the port is the one after it.
Launch read_launch(const Environment& environment);
Launch read_launch();  // of this process

}  // namespace strata
