#include <fmt/format.h>

#include <memory>

#include "cli/bench_device.hpp"
#include "cli/bench_watch.hpp"
#include "cli/command_bench.hpp"
#include "strata/measure/gpu_bench.hpp"

namespace strata {
namespace {

struct BenchGpuArguments {
  GpuBenchOptions bench;
  std::string device = "gpu", json;
};

int bench_gpu_command(const BenchGpuArguments& options) {
  check_target(options.json);
  GpuBenchOptions bench = options.bench;
  bench.gpu = parse_bench_device(options.device);
  if (!bench.gpu) bench.sizes = host_bench_sizes();
  const StopSignal signal("\nstopping; a second signal ends at once\n");
  GpuReport report;
  const int code = measure_watched(signal, "", [&](const BenchWatch& watch) {
    bench.watch = watch;
    report = bench_gpu(bench);
  });
  if (code != 0) return code;
  report.strata_version = STRATA_VERSION;
  fmt::print("{}", format_gpu_report(report));
  write_asked_file(options.json, to_json(report));
  return 0;
}

}  // namespace

void add_bench_gpu(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "gpu", "A GPU: links, memory, matrix products, attention, the optimizer, launches");
  auto options = std::make_shared<BenchGpuArguments>();
  command->add_option("--device", options->device, bench_device_help)->capture_default_str();
  command->add_option("--seconds", options->bench.seconds, "Seconds that samples take in all")
      ->capture_default_str();
  command->add_option("--repeats", options->bench.repeats, "Samples of each measurement")
      ->capture_default_str();
  command->add_option("--threads", options->bench.num_threads,
                      "Threads of the host standing in; default: one per usable core");
  command->add_option("--json", options->json, "Write the report with all samples to this file");
  command->callback(
      [&action, options] { action = [options] { return bench_gpu_command(*options); }; });
}

}  // namespace strata
