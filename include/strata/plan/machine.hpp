#pragma once
// What a machine can do, as numbers: enough to predict a step on it without being on it. Read from
// a file of configs/machines or measured by `strata bench all --write-profile`.
//
// All rates are what is achieved, not what is printed on the box. Bytes and bytes/s count 1, not
// 1024. A MachineProfile is a value; any thread.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "strata/core/dtype.hpp"

namespace strata {

// A matrix product's rate at one size; between sizes the rate is interpolated over log(flops).
struct MatmulRate {
  double flops = 0;  // of one call, 2 m n k
  double flops_per_s = 0;
};

// Of a machine without accelerators.
inline constexpr const char* host_accelerator_name = "host standing in for an accelerator";

// One accelerator, or the host standing in for one.
struct AcceleratorProfile {
  std::string name;
  std::uint64_t memory_bytes = 0;     // what a run can have of it
  double peak_flops_per_s = 0;        // dense bf16, as printed: MFU is measured against it
  double memory_bytes_per_s = 0;      // its own memory, copy rate (read plus written)
  std::vector<MatmulRate> bf16, f32;  // by rising flops; never empty for the dtype in use
  double attention_efficiency = 1;    // attention's rate over that of a product of as many flops
  double seconds_per_call = 0;        // launch, paid by each kernel call
};

// Between one accelerator and host memory.
struct LinkProfile {
  double up_bytes_per_s = 0;    // host to device, alone
  double down_bytes_per_s = 0;  // device to host, alone
  double both_bytes_per_s = 0;  // sum of the two directions when both are busy; 0: up + down
};

// One layout of the optimizer's pass on the host, all cores of the machine at work.
struct UpdateProfile {
  double params_per_s = 0;
};

struct HostProfile {
  std::uint64_t memory_bytes = 0;  // what a run can have of it
  int cores = 0;
  double memory_bytes_per_s = 0;  // all nodes together, read plus written
  // By "gradient/master/moments", as `strata bench adam` names layouts: "bf16/f32/f32". A layout
  // that is not there is bound by memory.
  std::map<std::string, UpdateProfile> updates;
};

struct DriveProfile {
  std::uint64_t bytes = 0;
  double read_bytes_per_s = 0, write_bytes_per_s = 0;  // over what was written before
  // The sum of both when half is read and half written; 0: they take turns; twice the slower one's
  // rate: neither feels the other.
  double mixed_bytes_per_s = 0;
  double endurance_bytes = 0;  // may be written in its life; 0: unknown
  // Into files that were not there, as checkpoints are, until they are durable; 0: not told, taken
  // as write_bytes_per_s.
  double new_file_bytes_per_s = 0;

  double new_file_rate() const {
    return new_file_bytes_per_s > 0 ? new_file_bytes_per_s : write_bytes_per_s;
  }
};

// Collectives among the ranks of the machine.
struct CommProfile {
  // Bytes that one rank receives (all-gather) or sends (reduce-scatter) per second.
  double gather_bytes_per_s = 0, reduce_bytes_per_s = 0;
  double seconds_per_call = 0;
};

struct MachineProfile {
  std::string name;
  int ranks = 1;  // accelerators, all alike
  AcceleratorProfile accelerator;
  LinkProfile link;  // of each
  HostProfile host;  // shared by all
  std::vector<DriveProfile> drives;
  CommProfile comm;
  // By key of the file ("host.memory_bytes_per_s"): where a value comes from, or "assumed".
  std::map<std::string, std::string> sources;

  // Index in `drives` of the one that checkpoints and exports are taken to go to. output_dir is one
  // directory and nobody says on which drive, so it is the slowest for new files. -1: no drives.
  int saving_drive() const;
};

}  // namespace strata
