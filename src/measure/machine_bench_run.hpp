#pragma once
// What every part of a machine's measurement is given. Thread contract: one thread.

#include "bench_progress.hpp"

namespace strata {

struct MachineBenchRun {
  BenchProgress& progress;
  int repeats;
  int num_threads;
};

}  // namespace strata
