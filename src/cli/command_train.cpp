#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "cli/stop_signal.hpp"
#include "cli/text_file.hpp"
#include "strata/cli/machine_file.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/train/auto_plan.hpp"
#include "strata/train/predicted_step.hpp"
#include "strata/train/trainer.hpp"

namespace strata {
namespace {

struct TrainCommand {
  std::string machine;  // a profile of the machine; empty: none
  std::string trace;    // empty: none
  std::int64_t trace_steps = 3;
};

std::filesystem::path export_target(const RunConfig& config) {
  return config.export_dir.value_or(config.output_dir / "export");
}

// What would fail at the end is found at the start.
void check_targets(const RunConfig& config) {
  const auto target = export_target(config);
  if (std::filesystem::exists(target))
    throw ConfigError(
        fmt::format("the export folder {} exists: remove it, or name another with export_dir",
                    target.string()));
  std::error_code failed;
  std::filesystem::create_directories(config.output_dir, failed);
  if (failed) throw SystemError("create", config.output_dir.string(), failed.value());
}

void warn_of_missing_tokenizer(const RunConfig& config) {
  const auto& folder = config.model_name_or_path;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "vocab.json"})
    if (std::filesystem::exists(folder / name)) return;
  fmt::print(stderr, "warning: {} has no tokenizer.json, so the export will have none\n",
             folder.string());
}

void write_resolved_config(const RunConfig& config) {
  const auto path = config.output_dir / "resolved_config.yaml";
  replace_text_file(path, format_config(config));
  fmt::print("config   {}\n", path.string());
}

std::int64_t step_tokens(const RunConfig& config) {
  return config.per_device_train_batch_size * config.cutoff_len *
         config.gradient_accumulation_steps;
}

void print_outcome(const TrainOutcome& outcome) {
  if (outcome.steps == 0) return fmt::print("\nstopped before the first step: nothing to export\n");
  fmt::print("\n{} {} steps in {}, loss {:.4f} -> {:.4f}\n",
             outcome.stopped ? "stopped after" : "trained", outcome.steps,
             format_duration(outcome.seconds), outcome.loss_first, outcome.loss_last);
  if (outcome.skipped_steps > 0)
    fmt::print("{} steps were skipped: their gradients were not finite\n", outcome.skipped_steps);
  if (outcome.held_out_after.tokens > 0)
    fmt::print("held-out loss {:.4f} -> {:.4f} over {} tokens\n", outcome.held_out_before.loss,
               outcome.held_out_after.loss, outcome.held_out_after.tokens);
}

void print_peaks(const Session& session) {
  for (const TierPeak& peak : session.peaks())
    fmt::print("memory {:<4} planned {:>10}, measured {:>10}\n", peak.tier,
               format_bytes(peak.planned_bytes), format_bytes(peak.measured_bytes));
}

// The folder was free when the run began. If it no longer is, the weights go beside it: a run's
// work is not thrown away.
std::filesystem::path free_export_target(const RunConfig& config) {
  std::filesystem::path target = export_target(config);
  for (int number = 2; std::filesystem::exists(target); ++number) {
    target = export_target(config);
    target += fmt::format("-{}", number);
  }
  if (target != export_target(config))
    fmt::print(stderr, "warning: {} exists by now; exporting to {}\n",
               export_target(config).string(), target.string());
  return target;
}

void export_weights(const RunConfig& config, Session& session) {
  const auto target = free_export_target(config);
  session.export_to(target);
  fmt::print("exported {}\n", target.string());
}

PlannedRun prepare(const RunConfig& config) {
  check_targets(config);
  check_data(config);
  PlannedRun planned = plan_run(config, Purpose::train);
  warn_of_missing_tokenizer(config);
  write_resolved_config(config);
  print_plan(config, planned);
  std::fflush(stdout);
  return planned;
}

// The machine as a run of one rank has it: all of it, and of its drives as many as the config
// names. None: nothing is predicted.
std::optional<MachineProfile> run_machine(const TrainCommand& command, const RunConfig& config) {
  if (command.machine.empty()) return {};
  MachineProfile machine = read_machine_file(command.machine);
  machine.ranks = 1;
  machine.drives.resize(std::min(machine.drives.size(), config.offload.nvme_paths.size()));
  return machine;
}

// offload.auto: what the config leaves open is what a search finds fastest on the machine.
RunConfig searched(const RunConfig& config, const std::optional<MachineProfile>& machine) {
  if (!config.offload.automatic || !machine) return config;
  const RunConfig chosen = auto_plan(config, *machine);
  fmt::print("offload.auto found, to paste in its place:\n{}\n", auto_plan_block(chosen));
  return chosen;
}

std::optional<Simulation> predict(const RunConfig& config, const PlannedRun& run,
                                  const std::optional<MachineProfile>& machine) {
  std::optional<Simulation> predicted = predict_step(run, machine);
  if (!predicted) return {};
  const auto prediction = prediction_of(*run.plan.schedule("train"), *predicted);
  fmt::print("step     {}\n", format_prediction(prediction, step_tokens(config)));
  return predicted;
}

// Before anything is loaded: a file that cannot be written should not cost the time.
std::unique_ptr<TraceFile> open_trace(const TrainCommand& command) {
  return command.trace.empty() ? nullptr : std::make_unique<TraceFile>(command.trace);
}

int train(const RunOptions& options, const TrainCommand& command) {
  const RunConfig asked = load_run_config(options);
  const std::optional<MachineProfile> machine = run_machine(command, asked);
  const RunConfig config = searched(asked, machine);
  PlannedRun planned = prepare(config);
  const std::unique_ptr<TraceFile> trace = open_trace(command);
  const TrainerOptions watched{trace.get(), command.trace_steps, predict(config, planned, machine)};
  Session session(config, std::move(planned));
  session.check_export(export_target(config));
  for (const std::string& note : session.notes()) fmt::print("{}\n", note);
  Progress progress(config.output_dir, terminal_style(stdout), stdout);
  Trainer trainer(config, session, progress, watched);
  fmt::print("steps    {} ({:.4g} per epoch)\n\n", trainer.total_steps(),
             trainer.steps_per_epoch());
  std::fflush(stdout);
  StopSignal signal;
  const TrainOutcome outcome = trainer.run(signal.requested());
  print_outcome(outcome);
  fmt::print("{}", format_roofline(outcome.roofline));
  if (trace != nullptr && outcome.steps > 0) fmt::print("trace    {}\n", command.trace);
  print_peaks(session);
  const std::int64_t sound_steps = outcome.steps - (outcome.failure.empty() ? 0 : 1);
  if (sound_steps > 0) export_weights(config, session);
  if (!outcome.failure.empty()) throw Error(outcome.failure);
  return outcome.stopped ? 128 + signal.number() : 0;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("train", "Fine-tune a model and export it");
  auto run = add_run_options(*command);
  auto train_command = std::make_shared<TrainCommand>();
  command->add_option("--machine", train_command->machine,
                      "Profile of this machine: each step is compared with its prediction, and "
                      "offload.auto searches with its rates");
  command->add_option("--trace", train_command->trace,
                      "Write a Chrome trace of a few steps, for ui.perfetto.dev");
  command
      ->add_option("--trace-steps", train_command->trace_steps,
                   "Steps in the trace, from the third of the run on")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1000}))
      ->capture_default_str();
  command->callback([&action, run, train_command] {
    action = [run, train_command] { return train(*run, *train_command); };
  });
}

}  // namespace strata
