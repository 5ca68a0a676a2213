#pragma once
// Measures this machine as a MachineProfile: a GPU, or the host standing in for one, its memory cut
// in two. Products and attention, copies as the lanes make them, memory, the optimizer on the CPU
// in each layout of its state, drives, and collectives among threads.
//
// Thread contract: one thread, which is bound to the first NUMA node.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/measure/bench_watch.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

struct MachineBenchOptions {
  std::string command, date;    // that the sources of measured values name
  std::optional<int> gpu = {};  // ordinal of the one that is measured; none: the host stands in
  int num_threads = 0;          // of products and the optimizer; 0: one per usable core
  // None: one, or one for each GPU of the measured one's kind. Above 1 collectives are measured
  // among threads of the host standing in; among GPUs they are assumed.
  std::optional<int> ranks = {};
  int repeats = 3;
  // Of each GPU, or of all that the host stands in for. None: what is free on a GPU, half of what
  // is free on the host.
  std::optional<std::uint64_t> gpu_limit = {};
  std::vector<std::int64_t> widths = {64, 256, 576, 2048, 4096};  // hidden sizes of Llamas
  std::int64_t tokens = 512;                                      // of a product
  std::int64_t attention_tokens = 2048, attention_heads = 8, attention_kv_heads = 2,
               attention_head_dim = 64;
  std::int64_t parameters = 16'000'000;      // of the optimizer's passes
  std::uint64_t array_bytes = 256ull << 20;  // of memory's passes, copies and collectives
  std::vector<std::string> nvme_paths = {};
  std::uint64_t nvme_bytes = 1ull << 30;  // of a file; up to three per path
  double nvme_seconds = 0.5;              // of a sample
  BenchWatch watch = {};
};

// What is measured on a GPU: sizes that keep one busy.
MachineBenchOptions gpu_machine_options(int gpu);

// Throws ConfigError for options out of range, for a path that is no drive and where there is no
// such GPU, OutOfMemory where the free memory does not suffice.
MachineProfile bench_machine(const MachineBenchOptions& options);

}  // namespace strata
