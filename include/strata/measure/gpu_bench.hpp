#pragma once
// Measures a GPU through the device and the kernels that a run uses: links to the host, memory,
// matrix products, attention, the optimizer, passes over memory, launches. Thread contract: one
// thread; makes one more.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/measure/bench_watch.hpp"
#include "strata/measure/gpu_report.hpp"

namespace strata {

struct GpuBenchAttention {
  std::int64_t tokens = 0, heads = 0, kv_heads = 0, head_dim = 0;
};

// What is worked on: defaults are a layer of Llama 3 8B, and arrays that no cache holds.
struct GpuBenchSizes {
  std::int64_t tokens = 4096, hidden = 4096, kv = 1024, ffn = 14336, vocabulary = 128256;
  std::vector<std::int64_t> squares = {4096, 8192, 16384};
  std::int64_t f32_square = 4096;
  std::vector<GpuBenchAttention> attention = {{2048, 32, 8, 64},  {4096, 32, 8, 64},
                                              {8192, 32, 8, 64},  {2048, 32, 8, 128},
                                              {4096, 32, 8, 128}, {8192, 32, 8, 128}};
  std::int64_t parameters = 1 << 27;  // of the optimizer's passes
  std::int64_t pass_rows = 16384;     // of the passes over memory
  std::int64_t logit_rows = 4096;     // of the loss and the embedding
  std::uint64_t copy_bytes = 1ull << 30;
};
// As much as a host standing in gets through in the time.
GpuBenchSizes host_bench_sizes();

struct GpuBenchOptions {
  std::optional<int> gpu = 0;  // none: the host standing in for one
  int num_threads = 0;         // of the host standing in; 0: one per usable core
  double seconds = 30;         // that samples take in all, about
  int repeats = 5;
  GpuBenchSizes sizes = {};
  BenchWatch watch = {};
};

// Throws ConfigError for options out of range and where there is no such GPU, with the reason;
// OutOfMemory where its free memory does not suffice.
GpuReport bench_gpu(const GpuBenchOptions& options);

}  // namespace strata
