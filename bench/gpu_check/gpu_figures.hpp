#pragma once
// Rows from the JSON of `strata bench gpu` and `strata bench all`. Figures are SI: bytes and FLOPs
// per second. All throw nlohmann's exceptions when a text is no such report.

#include <string>
#include <vector>

#include "gpu_check/check_row.hpp"

namespace strata {

// In the order of gpu_bench_rows().
const std::vector<std::string>& gpu_bench_parts();

// Links, products, attention beside the best product, the optimizer.
std::vector<CheckRow> gpu_bench_rows(const std::string& report);
std::uint64_t gpu_memory_bytes(const std::string& report);

CheckRow profile_row(const std::string& part, const std::string& report);
// The value of a field of a machine profile, such as "accelerator.peak_flops_per_s"; 0: it has
// none.
double profile_value(const std::string& report, const std::string& field);

}  // namespace strata
