#pragma once
// The GPUs of a machine's measurement. Thread contract: one thread.

#include <vector>

#include "bench_accelerator.hpp"
#include "strata/measure/machine_bench.hpp"

namespace strata {

struct BenchGpus {
  std::vector<CudaDeviceFacts> alike;  // those of one kind; the first is measured
  BenchAccelerator first;
};
// Throws ConfigError where there is no GPU of this ordinal.
BenchGpus open_gpus(const CudaInventory& inventory, int ordinal);

// bench_machine() on devices that somebody else opened.
MachineProfile bench_machine_with(const MachineBenchOptions& options, BenchGpus gpus);

}  // namespace strata
