#include "cli/command_bench_passes.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/progress_line.hpp"
#include "cli/stop_signal.hpp"
#include "cli/text_file.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"

namespace strata {
namespace {

PassReport measure_watched(const std::function<PassReport(const PassBenchWatch&)>& measure,
                           const StopSignal& signal) {
  ProgressLine line(stderr, progress_shape(stderr), terminal_style(stderr));
  return measure(
      {.progress = [&line](const std::string& what, double done) { line.show(what, done); },
       .stop = signal.requested()});
}

}  // namespace

void check_json_target(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  throw ConfigError(fmt::format("{}: {} is no folder", path, folder.string()));
}

std::vector<int> threads_or_default(const std::vector<int>& asked) {
  if (!asked.empty()) return asked;
  const int cores = read_topology().usable_cores;
  return cores > 1 ? std::vector{1, cores} : std::vector{1};
}

int run_pass_bench(const std::function<PassReport(const PassBenchWatch&)>& measure,
                   const std::string& json_path,
                   const std::function<std::string(const PassReport&)>& answer) {
  const StopSignal signal("\nstopping; a second signal ends at once\n");
  PassReport report;
  try {
    report = measure_watched(measure, signal);
  } catch (const Interrupted& interrupted) {
    fmt::print(stderr, "strata: {}\n", interrupted.what());
    return 128 + signal.number();
  }
  report.strata_version = STRATA_VERSION;
  fmt::print("{}\n{}", format_pass_report(report), answer(report));
  if (json_path.empty()) return 0;
  replace_text_file(json_path, to_json(report));
  fmt::print("\nwrote {}\n", json_path);
  return 0;
}

}  // namespace strata
