#pragma once
// Measures how fast the CPU updates parameters, in each layout of the optimizer's state, and how
// near that is to what memory allows. Thread contract: one thread, which is bound to the first NUMA
// node.

#include <string>
#include <vector>

#include "strata/measure/adam_passes.hpp"
#include "strata/measure/bench_watch.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {

struct AdamBenchOptions {
  std::vector<AdamLayout> layouts;
  std::vector<std::int64_t> counts;  // parameters
  std::vector<int> threads;
  int repeats = 7;
  Pings pings = Pings::taken;
  BenchWatch watch = {};
};

// "adamw bf16/split/q8"
std::string update_pass_name(const AdamLayout& layout);
std::string norm_pass_name(DType gradient);  // "norm of bf16 gradient"

// A result for the update of each layout, and for the norm of each dtype of gradients among them.
// Throws ConfigError for options out of range and OutOfMemory where the memory that is free does
// not suffice, before anything is measured.
PassReport bench_adam(const AdamBenchOptions& options);

}  // namespace strata
