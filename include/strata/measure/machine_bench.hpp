#pragma once
// Measures this machine as a MachineProfile: the host standing in for an accelerator, its memory
// cut in two. Products and attention of the host kernels, copies as the lanes make them, memory,
// the optimizer in each layout of its state, drives, and collectives among threads.
//
// Thread contract: one thread, which is bound to the first NUMA node.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strata/plan/machine.hpp"

namespace strata {

struct MachineBenchOptions {
  std::string command, date;  // that the sources of measured values name
  int num_threads = 0;        // of products and the optimizer; 0: one per usable core
  int ranks = 1;              // threads that collectives run among; 1: none are measured
  int repeats = 3;
  std::optional<std::uint64_t> gpu_limit = {};  // none: half of the memory that is free
  std::vector<std::int64_t> widths = {64, 256, 576, 2048, 4096};  // hidden sizes of Llamas
  std::int64_t tokens = 512;                                      // of a product
  std::int64_t attention_tokens = 2048;
  std::int64_t parameters = 16'000'000;      // of the optimizer's passes
  std::uint64_t array_bytes = 256ull << 20;  // of memory's passes, copies and collectives
  std::vector<std::string> nvme_paths = {};
  std::uint64_t nvme_bytes = 1ull << 30;  // of a file; two per path
  double nvme_seconds = 0.5;              // of a sample
  // Called between samples, from the measuring thread: what is being measured, and the part done.
  std::function<void(const std::string& what, double done)> progress = {};
  const std::atomic<bool>* stop = nullptr;  // set: end early, throw Interrupted
};

// Throws ConfigError for options out of range and for a path that is no drive, OutOfMemory where
// the free memory does not suffice.
MachineProfile bench_machine(const MachineBenchOptions& options);

}  // namespace strata
