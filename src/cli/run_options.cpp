#include "cli/run_options.hpp"

#include <fmt/format.h>

#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/train/planned_ranks.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

std::shared_ptr<RunOptions> add_run_options(CLI::App& command) {
  auto options = std::make_shared<RunOptions>();
  command.add_option("config", options->file, "YAML file with the run's settings (docs/config.md)")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_option("overrides", options->overrides,
                     "key=value, dots reach nested keys: offload.optimizer.nvme=0.5");
  return options;
}

RunConfig load_run_config(const RunOptions& options) {
  RunConfig config = read_config(options.file, options.overrides);
  print_notes(config);
  check_model(config, options.file);
  return config;
}

int print_config(const RunConfig& config) {
  print_warnings(config.warnings);
  fmt::print("{}", format_config(config));
  return 0;
}

void print_notes(const RunConfig& config) {
  for (const std::string& note : config.notes) fmt::print("deepspeed {}\n", note);
  std::fflush(stdout);  // An error to come is told after it.
  print_warnings(config.warnings);
}

void check_train_batch_size(const RunConfig& config, int world) {
  const std::int64_t rows =
      config.per_device_train_batch_size * config.gradient_accumulation_steps * world;
  if (!config.train_batch_size || *config.train_batch_size == rows) return;
  throw ConfigError(fmt::format(
      "train_batch_size: {} is not per_device_train_batch_size {} x gradient_accumulation_steps {} "
      "x {} ranks, which is {}: make them agree, or leave train_batch_size out",
      *config.train_batch_size, config.per_device_train_batch_size,
      config.gradient_accumulation_steps, world, rows));
}

void check_model(const RunConfig& config, const std::string& source_name) {
  if (config.model_name_or_path.empty())
    throw ConfigError(fmt::format(
        "{}: model_name_or_path is missing: give a Hugging Face model folder", source_name));
  if (!std::filesystem::is_directory(config.model_name_or_path))
    throw ConfigError(fmt::format(
        "model_name_or_path: {} is no folder: give a Hugging Face model folder on this machine",
        config.model_name_or_path.string()));
}

JobOptions job_options(const RunConfig& config) {
  JobOptions options;
  options.ranks = static_cast<int>(config.ranks);
  options.agreement = fmt::format("strata {}\n", STRATA_VERSION);
  for (const RunConfig::Origin& entry : config.resolved)
    options.agreement += fmt::format("{}: {}\n", entry.key, entry.value);
  options.comm.timeout_s = config.ddp_timeout;
  options.comm.on_late = [](const std::string& text) { fmt::print(stderr, "warning: {}\n", text); };
  return options;
}

void tell_devices(const DeviceChoice& choice) {
  if (!choice.note.empty()) fmt::print("gpus     {}\n", choice.note);
}

DeviceChoice choose_and_tell_devices(const RunConfig& config, Job& job) {
  DeviceChoice choice = choose_devices(config, job);
  if (job.leads()) tell_devices(choice);
  choice.on_warning = [](const std::string& text) { fmt::print(stderr, "warning: {}\n", text); };
  return choice;
}

void print_other_ranks(const std::vector<PlannedRun>& runs) {
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const PlannedRun& run = runs[i];
    if (run.device != nullptr)
      fmt::print("rank {:<4}device   {}\n", run.program.rank, run.device_text);
    if (run.threads == nullptr) continue;
    for (const std::string& line : run.threads->lines())
      fmt::print("rank {:<4}{}\n", run.program.rank, line);
  }
}

void print_plan(const RunConfig& config, const PlannedRun& run) {
  const double millions = static_cast<double>(run.model->num_parameters()) / 1e6;
  fmt::print("model    {} ({:.1f}M parameters, {} compute)\n", config.model_name_or_path.string(),
             millions, dtype_name(run.program.contribution_dtype));
  fmt::print("optim    {}\n", describe(optimizer_config(config)));
  fmt::print("batch    {} x {} tokens x {} micro-batches\n", config.per_device_train_batch_size,
             config.cutoff_len, config.gradient_accumulation_steps);
  if (run.workspace_bytes > 0)
    fmt::print("gpu      {} for kernels{} beside its tier\n", format_bytes(run.workspace_bytes),
               config.world > 1 ? " and sums over ranks" : "");
  std::size_t ops = 0;
  for (const Schedule& schedule : run.plan.schedules) ops += schedule.ops.size();
  fmt::print("plan     {:016x}, {} ops, tiles of {} elements, verified\n\n",
             plan_hash(run.program, run.plan), ops, run.program.tile_elements);
  fmt::print("{}\n", format_plan(run.program, run.plan));
}

}  // namespace strata
