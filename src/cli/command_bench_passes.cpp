#include "cli/command_bench_passes.hpp"

#include <fmt/format.h>

#include "strata/topology/topology.hpp"

namespace strata {
std::vector<int> threads_or_default(const std::vector<int>& asked) {
  if (!asked.empty()) return asked;
  const int cores = read_topology().usable_cores;
  return cores > 1 ? std::vector{1, cores} : std::vector{1};
}

int run_pass_bench(const std::function<PassReport(const BenchWatch&)>& measure,
                   const std::string& json_path,
                   const std::function<std::string(const PassReport&)>& answer) {
  const StopSignal signal("\nstopping; a second signal ends at once\n");
  PassReport report;
  const int code =
      measure_watched(signal, "", [&](const BenchWatch& watch) { report = measure(watch); });
  if (code != 0) return code;
  report.strata_version = STRATA_VERSION;
  fmt::print("{}\n{}", format_pass_report(report), answer(report));
  write_asked_file(json_path, to_json(report));
  return 0;
}

}  // namespace strata
