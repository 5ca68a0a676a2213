#include <memory>

#include "cli/command_bench.hpp"
#include "cli/command_bench_passes.hpp"
#include "strata/measure/memory_bench.hpp"

namespace strata {
namespace {

struct BenchMemoryArguments {
  std::string size = "512MiB", json;
  std::vector<int> threads;
  int repeats = MemoryBenchOptions().repeats;
};

int bench_memory_command(const BenchMemoryArguments& options) {
  check_target(options.json);
  MemoryBenchOptions bench;
  bench.array_bytes = option_bytes("--size", options.size);
  bench.threads = threads_or_default(options.threads);
  bench.repeats = options.repeats;
  return run_pass_bench(
      [&](const BenchWatch& watch) {
        bench.watch = watch;
        return bench_memory(bench);
      },
      options.json, [](const PassReport&) { return std::string(); });
}

}  // namespace

void add_bench_memory(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "memory", "Bandwidth of memory: STREAM's passes and those of the optimizer");
  auto options = std::make_shared<BenchMemoryArguments>();
  command->add_option("--size", options->size, "Size of each of three arrays; far above the caches")
      ->capture_default_str();
  command
      ->add_option("--threads", options->threads,
                   "Numbers of threads; default: 1 and one per usable core")
      ->delimiter(',');
  command->add_option("--repeats", options->repeats, "Samples of each pass")->capture_default_str();
  command->add_option("--json", options->json, "Write the report with all samples to this file");
  command->callback(
      [&action, options] { action = [options] { return bench_memory_command(*options); }; });
}

}  // namespace strata
