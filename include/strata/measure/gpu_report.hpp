#pragma once
// What `strata bench gpu` found out, as a value: shown as a table, kept as JSON. Rates follow from
// the median of the samples. GB is 1e9 bytes.

#include <cstdint>
#include <string>
#include <vector>

#include "strata/measure/samples.hpp"

namespace strata {

struct MeasuredDevice {
  std::string name;  // "NVIDIA H200"; "host"
  int ordinal = 0;
  std::string compute;                          // "9.0"; empty: the host
  std::string pci_address;                      // empty: the host
  std::uint64_t memory_bytes = 0;               // in all
  std::uint64_t usable_bytes = 0;               // free before the measurement
  int sms = 0;                                  // multiprocessors; 0: the host
  int copy_engines = 0;                         // 2 or more: both directions at once
  std::string driver_version, runtime_version;  // of CUDA
};

struct MeasuredLinks {
  std::uint64_t bytes = 0;  // copied each way for a sample
  Samples h2d, d2h, both;   // bytes per second; both: the sum, when each goes on beside the other
};

// y (m x n) of x (m x k): m tokens, n outputs, k inputs.
struct MeasuredProduct {
  std::string pass;  // "forward", "backward input", "backward weight"
  std::string dtype;
  std::uint64_t m = 0, n = 0, k = 0;
  double flops = 0;  // 2 m n k
  Samples seconds;
  double flops_per_s() const { return flops / seconds.median(); }
};

// Causal, over one document: 2 t^2 q d FLOPs forward, 5 t^2 q d backward.
struct MeasuredAttention {
  std::string dtype;
  std::uint64_t tokens = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double forward_flops = 0, backward_flops = 0;
  Samples forward_seconds, backward_seconds;
  double forward_flops_per_s() const { return forward_flops / forward_seconds.median(); }
  double backward_flops_per_s() const { return backward_flops / backward_seconds.median(); }
};

// AdamW; layouts are named as `strata bench adam` names them.
struct MeasuredUpdate {
  std::string layout;
  std::uint64_t parameters = 0;
  double bytes = 0;  // read plus written
  Samples seconds;
  double params_per_s() const { return static_cast<double>(parameters) / seconds.median(); }
  double bytes_per_s() const { return bytes / seconds.median(); }
};

// A kernel that memory bounds.
struct MeasuredPass {
  std::string pass;                   // "rmsnorm forward"
  std::uint64_t rows = 0, width = 0;  // of its tensors
  double bytes = 0;                   // of its operands, read plus written
  Samples seconds;
  double bytes_per_s() const { return bytes / seconds.median(); }
};

struct GpuReport {
  static constexpr int schema_version = 1;
  std::string strata_version;  // filled by the caller of the benchmark
  std::string started_at;      // ISO 8601, UTC
  std::string kernel, cpu;     // of the host
  std::string kernels;         // "cuda", "cpu"
  int repeats = 0;
  double sample_seconds = 0;  // at least, where one call takes less
  MeasuredDevice device;
  MeasuredLinks links;
  std::uint64_t copy_bytes = 0;  // of a copy within the device's memory
  Samples memory_bytes_per_s;    // by such copies, read plus written
  std::vector<MeasuredProduct> matmul;
  std::vector<MeasuredAttention> attention;
  std::vector<MeasuredUpdate> adam;
  std::vector<MeasuredPass> passes;
  Samples launch_seconds;         // of a call that adds one element, many in a row
  Samples matmul_launch_seconds;  // of a product of 16 x 16 x 16
  std::vector<std::string> notes;

  // The best rate of forward bf16 products of squares: what everything else is set against.
  double peak_matmul_flops_per_s() const;
};

std::string to_json(const GpuReport& report);
// Throws ConfigError for anything but a report of a known schema version.
GpuReport gpu_report_from_json(const std::string& text, const std::string& path);
// Whether a JSON text claims to be such a report.
bool is_gpu_report(const std::string& text);

// A table for people.
std::string format_gpu_report(const GpuReport& report);
// B against A, for each figure that either has.
std::string compare_gpu_reports(const GpuReport& a, const GpuReport& b);

}  // namespace strata
