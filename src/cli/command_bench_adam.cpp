#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "cli/command_bench.hpp"
#include "cli/command_bench_adam_answer.hpp"
#include "cli/command_bench_passes.hpp"
#include "cli/run_options.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/measure/adam_bench.hpp"
#include "strata/optim/optimizer.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {
namespace {

constexpr std::int64_t default_count = 100'000'000, count_step = 1'000'000;

struct BenchAdamArguments {
  std::vector<double> counts;  // as text may say 1e8
  std::vector<int> threads;
  std::vector<std::string> layouts, optimizers, overrides;
  std::string config, json;
  int repeats = AdamBenchOptions().repeats;
};

void add_layouts(std::vector<AdamLayout>& layouts, const BenchAdamArguments& options,
                 UpdateRule rule) {
  for (const std::string& name : options.layouts) layouts.push_back(parse_state_layout(name, rule));
  if (!options.layouts.empty()) return;
  for (const AdamLayout& layout : all_state_layouts(rule)) layouts.push_back(layout);
}

// Of AdamW all, of the others the largest: they differ from AdamW in arithmetic, not in kind.
std::vector<AdamLayout> usual_layouts() {
  std::vector<AdamLayout> layouts = all_state_layouts(UpdateRule::adamw);
  for (const UpdateRule rule : {UpdateRule::adam, UpdateRule::sgd, UpdateRule::lion})
    layouts.push_back({rule, DType::f32, DType::f32, DType::f32});
  return layouts;
}

std::vector<AdamLayout> layouts_of(const BenchAdamArguments& options) {
  if (options.layouts.empty() && options.optimizers.empty()) return usual_layouts();
  std::vector<AdamLayout> layouts;
  for (const std::string& name : options.optimizers)
    add_layouts(layouts, options, parse_update_rule(name));
  if (options.optimizers.empty()) add_layouts(layouts, options, UpdateRule::adamw);
  return layouts;
}

std::int64_t count_of(double asked) {
  if (!(asked >= 1) || asked > 1e15 || asked != std::floor(asked))
    throw ConfigError(fmt::format("--count {}: is no number of parameters", asked));
  return static_cast<std::int64_t>(asked);
}

// At most half of the memory that is free.
std::int64_t fitting_count(const std::vector<AdamLayout>& layouts) {
  std::uint64_t most = 1;
  for (const AdamLayout& layout : layouts)
    most = std::max(most, adam_passes_bytes(layout, count_step) / count_step + 1);
  const std::uint64_t fitting = read_topology().available_memory_bytes / 2 / most;
  const auto whole = static_cast<std::int64_t>(fitting) / count_step * count_step;
  return std::clamp(whole, count_step, default_count);
}

std::vector<std::int64_t> counts_of(const BenchAdamArguments& options,
                                    const std::vector<AdamLayout>& layouts) {
  if (options.counts.empty()) return {fitting_count(layouts)};
  std::vector<std::int64_t> counts;
  for (const double count : options.counts) counts.push_back(count_of(count));
  return counts;
}

// That of the layers: a tied embedding's gradient is a sum, and so fp32, in any run.
AdamLayout layout_of(const RunConfig& config) {
  const OptimizerConfig optimizer = optimizer_config(config);
  const bool is_sum = config.gradient_accumulation_steps > 1;
  const DType gradient = config.bf16 && !is_sum ? DType::bf16 : DType::f32;
  const DType master = state_shards(optimizer).front().dtype;
  return {optimizer.rule, gradient, master, optimizer.moments};
}

UpdateDemand demand_of(const BenchAdamArguments& options) {
  const RunConfig config = load_run_config({options.config, options.overrides});
  const auto kernels = make_ref_kernels();
  const auto model = make_llama(llama_config(read_hf_config(config.model_name_or_path)),
                                {.tokens_per_micro_batch = config.cutoff_len}, *kernels);
  return {"config's", static_cast<double>(model->num_parameters()), layout_of(config)};
}

std::vector<UpdateDemand> demands_of(const BenchAdamArguments& options) {
  if (!options.config.empty()) return {demand_of(options)};
  if (!options.overrides.empty())
    throw ConfigError(fmt::format("'{}': key=value belongs to --config", options.overrides[0]));
  return {{"7B", 7e9}, {"70B", 70e9}};
}

// What the config asks for is measured whatever else is.
void add_layouts_of(const std::vector<UpdateDemand>& demands, std::vector<AdamLayout>& layouts) {
  for (const UpdateDemand& demand : demands)
    if (demand.layout && std::ranges::find(layouts, *demand.layout) == layouts.end())
      layouts.push_back(*demand.layout);
}

int bench_adam_command(const BenchAdamArguments& options) {
  check_target(options.json);
  const std::vector<UpdateDemand> demands = demands_of(options);
  AdamBenchOptions bench;
  bench.layouts = layouts_of(options);
  add_layouts_of(demands, bench.layouts);
  bench.counts = counts_of(options, bench.layouts);
  bench.threads = threads_or_default(options.threads);
  bench.repeats = options.repeats;
  return run_pass_bench(
      [&](const BenchWatch& watch) {
        bench.watch = watch;
        return bench_adam(bench);
      },
      options.json,
      [&](const PassReport& report) { return format_adam_answer(report, bench.layouts, demands); });
}

void add_options(CLI::App& command, BenchAdamArguments& o) {
  command.add_option("--count", o.counts, "Parameters, as 1e8; default: 1e8, or what fits memory")
      ->delimiter(',');
  command
      .add_option("--threads", o.threads, "Numbers of threads; default: 1 and one per usable core")
      ->delimiter(',');
  command
      .add_option("--layout", o.layouts,
                  "gradient/master/moments, as bf16/split/q8; may be repeated; default: all")
      ->delimiter(',');
  command
      .add_option("--optimizer", o.optimizers,
                  "adamw, adam, sgd or lion; may be repeated; default: adamw in all layouts, the "
                  "others in one")
      ->delimiter(',');
  command.add_option("--repeats", o.repeats, "Samples of each pass")->capture_default_str();
  command.add_option("--json", o.json, "Write the report with all samples to this file");
  command.add_option("--config", o.config, "Config of a run to answer for, instead of 7B and 70B")
      ->check(CLI::ExistingFile);
  command.add_option("overrides", o.overrides, "key=value for --config");
}

}  // namespace

void add_bench_adam(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "adam", "The optimizer on the CPU: parameters per second in each layout of its state");
  auto options = std::make_shared<BenchAdamArguments>();
  add_options(*command, *options);
  command->callback(
      [&action, options] { action = [options] { return bench_adam_command(*options); }; });
}

}  // namespace strata
