#pragma once
// Times kernels of a training step that memory bounds. Thread contract: one thread.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernel_timer.hpp"
#include "strata/measure/gpu_bench.hpp"

namespace strata {

// One kernel, not measured yet.
struct MemoryPass {
  std::string name;
  std::int64_t rows = 0, width = 0;
  std::function<TimedCall(KernelTimer&)> time;
};

std::vector<MemoryPass> memory_passes(const GpuBenchSizes& sizes);

}  // namespace strata
