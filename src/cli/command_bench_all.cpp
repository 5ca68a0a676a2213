#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "cli/bench_device.hpp"
#include "cli/bench_watch.hpp"
#include "cli/command_bench.hpp"
#include "cli/machine_values.hpp"
#include "strata/cli/machine_file.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/machine_bench.hpp"

namespace strata {
namespace {

struct BenchAllArguments {
  MachineBenchOptions bench;
  std::string profile, json, gpu_limit, size = "256MiB", nvme_size = "1GiB", device = "auto";
  // None: as suits the device.
  std::vector<std::int64_t> widths;
  std::optional<std::int64_t> tokens, attention_tokens;
  double count = 0;
};

// What depends on the device, unless it was asked for.
void choose_device(MachineBenchOptions& bench, const BenchAllArguments& options) {
  bench.gpu = parse_bench_device(options.device);
  const MachineBenchOptions usual =
      bench.gpu ? gpu_machine_options(*bench.gpu) : MachineBenchOptions();
  bench.widths = options.widths.empty() ? usual.widths : options.widths;
  bench.tokens = options.tokens.value_or(usual.tokens);
  bench.attention_tokens = options.attention_tokens.value_or(usual.attention_tokens);
  bench.attention_heads = usual.attention_heads;
  bench.attention_kv_heads = usual.attention_kv_heads;
  bench.attention_head_dim = usual.attention_head_dim;
}

MachineBenchOptions bench_options(const BenchAllArguments& options) {
  MachineBenchOptions bench = options.bench;
  choose_device(bench, options);
  bench.command = "strata bench all";
  bench.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  bench.array_bytes = option_bytes("--size", options.size);
  bench.nvme_bytes = option_bytes("--nvme-size", options.nvme_size);
  if (!options.gpu_limit.empty()) bench.gpu_limit = option_bytes("--gpu-limit", options.gpu_limit);
  if (!(options.count >= 1 && options.count <= 1e12))
    throw ConfigError(fmt::format("--count {}: 1 to 1e12 are possible", options.count));
  bench.parameters = static_cast<std::int64_t>(options.count);
  return bench;
}

int bench_all_command(const BenchAllArguments& options) {
  check_target(options.profile);
  check_target(options.json);
  MachineBenchOptions bench = bench_options(options);
  const StopSignal signal("\nstopping; a second signal ends at once and leaves files behind\n");
  MachineProfile machine;
  const int code = measure_watched(signal, "; nothing is written", [&](const BenchWatch& watch) {
    bench.watch = watch;
    machine = bench_machine(bench);
  });
  if (code != 0) return code;
  fmt::print("{}", machine_table(machine));
  write_asked_file(options.profile, machine_file_text(machine));
  write_asked_file(options.json, machine_json(machine));
  return 0;
}

std::string widths_text(const MachineBenchOptions& bench) {
  std::string text;
  for (const std::int64_t width : bench.widths)
    text += (text.empty() ? "" : ",") + std::to_string(width);
  return text;
}

void add_options(CLI::App& command, BenchAllArguments& o) {
  MachineBenchOptions& bench = o.bench;
  o.count = static_cast<double>(bench.parameters);
  command.add_option("--write-profile", o.profile, "Write the machine profile to this YAML file");
  command.add_option("--json", o.json, "Write the values and their sources to this file");
  command
      .add_option("--nvme-path", bench.nvme_paths,
                  "Directory on a drive to be measured; once per drive; default: no drives")
      ->allow_extra_args(false);
  command
      .add_option(
          "--device", o.device,
          fmt::format("auto: the first GPU, or cpu where there is none; {}", bench_device_help))
      ->capture_default_str();
  command.add_option("--gpu-limit", o.gpu_limit,
                     "Memory of the accelerator; default: what is free of a GPU's, half of what is "
                     "free of the host's");
  command.add_option("--ranks", bench.ranks,
                     "Ranks of a run; default: one for each GPU of the kind. Above 1 collectives "
                     "are measured among threads of the host");
  command.add_option("--threads", bench.num_threads, "Threads; default: one per usable core");
  command.add_option("--repeats", bench.repeats, "Samples of each measurement")
      ->capture_default_str();
  const MachineBenchOptions gpu = gpu_machine_options(0);
  command
      .add_option("--widths", o.widths,
                  "Hidden sizes of models whose products are timed; default: " +
                      widths_text(bench) + ", on a GPU " + widths_text(gpu))
      ->delimiter(',');
  command.add_option(
      "--tokens", o.tokens,
      fmt::format("Tokens of a product; default: {}, on a GPU {}", bench.tokens, gpu.tokens));
  command.add_option("--attention-tokens", o.attention_tokens,
                     fmt::format("Tokens that attention is timed on; default: {}, on a GPU {}",
                                 bench.attention_tokens, gpu.attention_tokens));
  command.add_option("--count", o.count, "Parameters of the optimizer's passes")
      ->capture_default_str();
  command.add_option("--size", o.size, "Size of the arrays of memory's passes, and of copies")
      ->capture_default_str();
  command.add_option("--nvme-size", o.nvme_size, "Size of a file; up to three per drive")
      ->capture_default_str();
  command.add_option("--nvme-duration", bench.nvme_seconds, "Seconds of each sample of a drive")
      ->capture_default_str();
}

}  // namespace

void add_bench_all(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "all", "Everything a plan asks of a machine, as a machine profile: about a minute");
  auto options = std::make_shared<BenchAllArguments>();
  add_options(*command, *options);
  command->callback(
      [&action, options] { action = [options] { return bench_all_command(*options); }; });
}

}  // namespace strata
