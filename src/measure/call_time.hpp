#pragma once
// How long a call takes: called as often as the clock can tell, and that several times. Thread
// contract: any thread.

#include <functional>

#include "bench_progress.hpp"

namespace strata {

// The median of `repeats` samples; the first calls, which pay for cold caches, do not count.
double call_seconds(const std::function<void()>& call, int repeats);

// What every part of a machine's measurement is given.
struct MachineBenchRun {
  BenchProgress& progress;
  int repeats;
  int num_threads;
};

}  // namespace strata
