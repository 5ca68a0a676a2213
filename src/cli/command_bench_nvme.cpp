#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/bench_watch.hpp"
#include "cli/command_bench.hpp"
#include "cli/command_bench_answer.hpp"
#include "cli/config_value.hpp"
#include "cli/run_options.hpp"
#include "cli/text_file.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/nvme_bench.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {
namespace {

// Of a sweep that nobody asked for.
constexpr double short_sweep_s = 15;

struct BenchNvmeArguments {
  std::vector<std::string> paths, patterns, overrides;
  std::string size = "2GiB", block, buffer = "256MiB", engine, config, json, plot;
  std::optional<int> depth;
  double duration_s = 0.5, sustained_s = 0;
  int repeats = 5;
  bool sweep = false, no_sweep = false, fio = false;
  std::optional<double> drive_tbw;
};

// What --config adds: the run that is asked about.
struct AskedRun {
  RunConfig config;
  NvmeTraffic traffic;
};

std::vector<NvmePattern> patterns_of(const BenchNvmeArguments& options) {
  if (options.patterns.empty()) return {nvme_patterns.begin(), nvme_patterns.end()};
  std::vector<NvmePattern> patterns;
  for (const std::string& name : options.patterns) {
    const NvmePattern pattern = parse_nvme_pattern(name);
    if (std::ranges::find(patterns, pattern) == patterns.end()) patterns.push_back(pattern);
  }
  return patterns;
}

void check_options(const BenchNvmeArguments& options) {
  if (options.config.empty() && !options.overrides.empty())
    throw ConfigError(
        fmt::format("'{}': give each directory a --path of its own; key=value belongs to --config",
                    options.overrides.front()));
  if (options.config.empty() && options.paths.empty())
    throw ConfigError("bench nvme: no --path: name a directory on each drive to be measured");
  if (options.drive_tbw && !(*options.drive_tbw > 0))
    throw ConfigError("--drive-tbw: a drive's rating in terabytes written is above 0");
  check_target(options.json);
  check_target(options.plot);
}

NvmeTraffic traffic_of(const RunConfig& config) {
  return nvme_traffic(plan_run(config, Purpose::train).plan, "train");
}

// The paths of the command line take the place of the config's, as do the weights.
std::optional<AskedRun> asked_run(const BenchNvmeArguments& options) {
  if (options.config.empty()) return std::nullopt;
  RunOptions run{options.config, options.overrides};
  if (!options.paths.empty()) {
    run.overrides.push_back("offload.nvme_paths=" + yaml_list(options.paths));
    run.overrides.emplace_back("offload.nvme_weights=[]");
  }
  AskedRun asked{load_run_config(run), {}};
  if (asked.config.offload.nvme_paths.empty())
    throw ConfigError(fmt::format(
        "{}: offload.nvme_paths is empty: give --path, a directory on each drive", options.config));
  asked.traffic = traffic_of(asked.config);
  return asked;
}

Sweep sweep_of(const BenchNvmeArguments& options) {
  if (options.no_sweep) return Sweep::off;
  const bool is_fixed = !options.block.empty() || options.depth.has_value();
  return options.sweep || !is_fixed ? Sweep::on : Sweep::off;
}

std::string engine_of(const BenchNvmeArguments& options, const std::optional<AskedRun>& run) {
  if (!options.engine.empty()) return options.engine;
  return run ? run->config.offload.io_engine : "auto";
}

NvmeBenchOptions bench_options(const BenchNvmeArguments& options,
                               const std::optional<AskedRun>& run) {
  NvmeBenchOptions bench;
  bench.paths = options.paths.empty() && run ? run->config.offload.nvme_paths : options.paths;
  bench.file_bytes = option_bytes("--size", options.size);
  bench.buffer_bytes = option_bytes("--buffer", options.buffer);
  if (!options.block.empty()) bench.block_bytes = option_bytes("--block", options.block);
  bench.depth = options.depth.value_or(bench.depth);
  bench.patterns = patterns_of(options);
  bench.duration_s = options.duration_s;
  bench.repeats = options.repeats;
  bench.sweep = sweep_of(options);
  if (!options.sweep) bench.sweep_s = short_sweep_s;
  bench.sustained_s = options.sustained_s;
  bench.fio = options.fio ? CompareFio::yes : CompareFio::no;
  bench.io_engine = engine_of(options, run);
  return bench;
}

NvmeDemand demand_of(const BenchNvmeArguments& options, const NvmeReport& report,
                     std::optional<AskedRun>& run) {
  if (!run) return demand_of_a_billion(report);
  // Placed anew: the answer's weights are among the settings that it recommends.
  run->config.offload.nvme_weights = nvme_weights(report);
  if (!run->config.offload.nvme_weights.empty()) run->traffic = traffic_of(run->config);
  return {"One optimizer step of " + options.config, run->traffic};
}

void write_files(const BenchNvmeArguments& options, const NvmeReport& report) {
  if (!options.json.empty() || !options.plot.empty()) fmt::print("\n");
  const auto write = [](const std::string& path, const std::string& text) {
    replace_text_file(path, text);
    fmt::print("wrote {}\n", path);
  };
  if (!options.json.empty()) write(options.json, to_json(report));
  if (!options.plot.empty()) write(options.plot, plot_nvme_report(report));
}

int bench_nvme_command(const BenchNvmeArguments& options) {
  check_options(options);
  std::optional<AskedRun> run = asked_run(options);
  NvmeBenchOptions bench = bench_options(options, run);
  const StopSignal signal("\nstopping; a second signal ends at once and leaves files behind\n");
  NvmeReport report;
  const int code = measure_watched(signal, "; the files of the benchmark are removed",
                                   [&](const BenchWatch& watch) {
                                     bench.watch = watch;
                                     report = bench_nvme(bench);
                                   });
  if (code != 0) return code;
  report.strata_version = STRATA_VERSION;
  fmt::print(
      "{}\n{}", format_nvme_report(report),
      format_answer(report, demand_of(options, report, run), {bench.io_engine, options.drive_tbw}));
  write_files(options, report);
  return 0;
}

void add_what_to_measure(CLI::App& command, BenchNvmeArguments& o) {
  command.add_option("--path", o.paths, "Directory on a drive to be measured; once per drive")
      ->allow_extra_args(false);
  command
      .add_option("--size", o.size,
                  "Size of a file; up to three per drive: read, written over, and a new one")
      ->capture_default_str();
  command.add_option("--block", o.block, "Bytes per request; default: what the sweep finds best");
  command.add_option("--depth", o.depth, "Blocks in flight per drive; default: as the sweep finds");
  command.add_option("--buffer", o.buffer, "Memory that is read into and written from")
      ->capture_default_str();
  command
      .add_option("--pattern", o.patterns, "read, write or mixed; may be repeated; default: all")
      ->allow_extra_args(false)
      ->delimiter(',');
  command.add_option("--duration", o.duration_s, "Seconds of each sample")->capture_default_str();
  command.add_option("--repeats", o.repeats, "Samples of each pattern")->capture_default_str();
  command.add_flag("--sweep", o.sweep,
                   "A sweep over block and depth of about a minute; a short one is the default "
                   "unless --block or --depth is given");
  command.add_flag("--no-sweep", o.no_sweep, "No sweep");
  command.add_option("--sustained", o.sustained_s, "Seconds of full load, to find the knee");
  command.add_flag("--fio", o.fio, "Run the same work through fio, alternating, for the ratio");
  command.add_option("--engine", o.engine, "auto, uring or threads; default: as the run would");
}

void add_what_to_tell(CLI::App& command, BenchNvmeArguments& o) {
  command.add_option("--json", o.json, "Write the report with all samples to this file");
  command.add_option("--plot", o.plot, "Draw the report into this SVG file");
  command
      .add_option("--config", o.config,
                  "Config of a run to answer for; its nvme_paths are measured without --path")
      ->check(CLI::ExistingFile);
  command.add_option("overrides", o.overrides, "key=value for --config");
  command.add_option("--drive-tbw", o.drive_tbw,
                     "Terabytes written that each drive is rated for, for its life in steps");
}

}  // namespace

void add_bench_nvme(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "nvme", "Bandwidth, latency and CPU cost of drives, and what they mean for a run");
  auto options = std::make_shared<BenchNvmeArguments>();
  add_what_to_measure(*command, *options);
  add_what_to_tell(*command, *options);
  command->callback(
      [&action, options] { action = [options] { return bench_nvme_command(*options); }; });
}

}  // namespace strata
