#pragma once
// What the commands that time passes over memory share.

#include <functional>
#include <string>
#include <vector>

#include "cli/bench_watch.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {

// 1, and one per core that this process may use.
std::vector<int> threads_or_default(const std::vector<int>& asked);

// Measures with progress and signals watched, prints the table and `answer`, writes the JSON.
// Returns the exit code.
int run_pass_bench(const std::function<PassReport(const BenchWatch&)>& measure,
                   const std::string& json_path,
                   const std::function<std::string(const PassReport&)>& answer);

}  // namespace strata
