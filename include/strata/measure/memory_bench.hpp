#pragma once
// Measures the bandwidth of memory: the four passes of STREAM, plain reading and filling, and the
// optimizer's passes without their arithmetic. Stores that end in memory not read before are
// measured normal and streamed past the caches. Memory is the engine's own kind: on 2 MiB pages
// where the system grants them, first touched by the threads that work on it.
// Thread contract: one thread, which is bound to the first NUMA node.

#include <cstdint>
#include <string>
#include <vector>

#include "strata/measure/bench_watch.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {

struct MemoryBenchOptions {
  std::uint64_t array_bytes = 512ull << 20;  // of each of three arrays; should dwarf the caches
  std::vector<int> threads;
  int repeats = 9;
  Pings pings = Pings::taken;
  BenchWatch watch = {};
};

// Throws ConfigError for options out of range, OutOfMemory where the free memory does not suffice.
PassReport bench_memory(const MemoryBenchOptions& options);

}  // namespace strata
