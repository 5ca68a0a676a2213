#pragma once
// What the commands that time passes over memory share.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "strata/measure/pass_report.hpp"

namespace strata {

struct PassBenchWatch {
  std::function<void(const std::string& what, double done)> progress;
  const std::atomic<bool>* stop;
};

// Throws ConfigError when the file's folder is missing: before a measurement, not after it.
void check_json_target(const std::string& path);
// 1, and one per core that this process may use.
std::vector<int> threads_or_default(const std::vector<int>& asked);

// Measures with progress and signals watched, prints the table and `answer`, writes the JSON.
// Returns the exit code.
int run_pass_bench(const std::function<PassReport(const PassBenchWatch&)>& measure,
                   const std::string& json_path,
                   const std::function<std::string(const PassReport&)>& answer);

}  // namespace strata
