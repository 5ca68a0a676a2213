#pragma once
// All that `strata doctor` judges, gathered beforehand: judging is then a pure function.

#include <optional>
#include <string>
#include <vector>

#include "strata/device/cuda_devices.hpp"
#include "strata/measure/doctor.hpp"
#include "strata/topology/drive.hpp"
#include "strata/topology/gpu.hpp"
#include "strata/topology/host.hpp"
#include "strata/topology/topology.hpp"

namespace strata {

struct UringTrial {
  std::string description;  // of the engine that was made
  std::string refusal;      // why none was; empty: it works
  int error_number = 0;
};

struct DirectoryFacts {
  std::string path;      // as the user wrote it
  std::string examined;  // the path, or its nearest parent that exists
  std::string failure;   // why it could not be looked at; empty: it could
  int write_error = 0;   // errno of what forbids to write there
  DriveFacts drive;
  std::string user = {};  // the run that has it as part of its NVMe tier; empty: none
};

struct DoctorFacts {
  HostFacts host;
  Topology topology;
  std::string topology_failure;
  UringTrial uring;
  GpuInventory gpus;
  CudaInventory cuda;
  int num_usable_gpus = 0;  // by this build
  std::optional<std::string> omp_num_threads;
  std::vector<DirectoryFacts> drives;
  std::optional<DirectoryFacts> output;
};

DoctorFacts gather_facts(const DoctorOptions& options);

std::vector<Finding> diagnose(const DoctorFacts& facts);

}  // namespace strata
