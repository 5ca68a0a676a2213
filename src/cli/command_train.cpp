#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "cli/byte_progress.hpp"
#include "cli/command.hpp"
#include "cli/describe_saves.hpp"
#include "cli/rank_trace.hpp"
#include "cli/run_options.hpp"
#include "cli/stop_signal.hpp"
#include "cli/text_file.hpp"
#include "measure/known_accelerators.hpp"
#include "strata/cli/machine_file.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/plan/prediction.hpp"
#include "strata/topology/process_memory.hpp"
#include "strata/train/auto_plan.hpp"
#include "strata/train/best_export.hpp"
#include "strata/train/disk_space.hpp"
#include "strata/train/grace_period.hpp"
#include "strata/train/planned_ranks.hpp"
#include "strata/train/predicted_step.hpp"
#include "strata/train/trainer.hpp"

namespace strata {
namespace {

constexpr const char* resolved_config_name = "resolved_config.yaml";
constexpr int exit_out_of_time = 75;  // EX_TEMPFAIL: run again to go on

struct TrainCommand {
  std::string machine;  // a profile of the machine; empty: none
  std::string trace;    // empty: none
  std::int64_t trace_steps = 3;
  bool prints_config = false;
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
  const auto path = config.output_dir / resolved_config_name;
  replace_text_file(path, format_config(config));
  fmt::print("config   {}\n", path.string());
}

std::int64_t step_tokens(const RunConfig& config) {
  return config.per_device_train_batch_size * config.cutoff_len *
         config.gradient_accumulation_steps * config.world;
}

void print_outcome(const TrainOutcome& outcome) {
  if (outcome.steps == 0) return fmt::print("\nstopped before the first step: nothing to export\n");
  const std::int64_t ran = outcome.steps - outcome.first_step;
  if (ran == 0)
    return fmt::print("\nnothing was trained: the state stood at step {} already\n", outcome.steps);
  const bool ended_early = outcome.stopped || !outcome.failure.empty();
  const std::string of_all =
      outcome.first_step == 0 ? ""
                              : fmt::format(", {} to {},", outcome.first_step + 1, outcome.steps);
  fmt::print("\n{} {} steps{} in {}, loss {:.4f} -> {:.4f}\n",
             ended_early ? "stopped after" : "trained", ran, of_all,
             format_duration(outcome.seconds), outcome.loss_first, outcome.loss_last);
  if (outcome.skipped_steps > 0)
    fmt::print("{} steps were skipped: their gradients were not finite\n", outcome.skipped_steps);
  if (outcome.held_out_after.tokens == 0) return;
  const std::string before = outcome.held_out_before.tokens == 0
                                 ? ""
                                 : fmt::format("{:.4f} -> ", outcome.held_out_before.loss);
  fmt::print("held-out loss {}{:.4f} over {} tokens\n", before, outcome.held_out_after.loss,
             outcome.held_out_after.tokens);
}

void print_peaks(const std::vector<TierPeak>& peaks, int world) {
  for (const TierPeak& peak : peaks)
    fmt::print("memory {:<4} planned {:>10}, measured {:>10}{}\n", peak.tier,
               format_bytes(peak.planned_bytes), format_bytes(peak.measured_bytes),
               world == 1 ? "" : " on the largest rank");
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

// The machine as the ranks of a run have it: all of it. None: nothing is predicted.
std::optional<MachineProfile> run_machine(const TrainCommand& command, const RunConfig& config) {
  if (command.machine.empty()) return {};
  MachineProfile machine = read_machine_file(command.machine);
  machine.ranks = config.world;
  return machine;
}

// offload.auto: what the config leaves open is what a search finds fastest on the machine, with as
// many of its drives as the config names.
RunConfig searched(const RunConfig& config, std::optional<MachineProfile> machine, bool leads) {
  if (!config.offload.automatic || !machine) return config;
  std::vector<DriveProfile>& drives = machine->drives;
  drives.resize(std::min(drives.size(), config.offload.nvme_paths.size()));
  const RunConfig chosen = auto_plan(config, *machine);
  if (leads)
    fmt::print("offload.auto found, to paste in its place:\n{}\n", auto_plan_block(chosen));
  return chosen;
}

std::optional<Simulation> predict(const RunConfig& config, const PlannedRun& run,
                                  const std::optional<MachineProfile>& machine, bool leads) {
  std::optional<Simulation> predicted = predict_step(run, machine);
  if (!predicted || !leads) return predicted;
  const auto prediction = prediction_of(*run.plan.schedule("train"), *predicted);
  fmt::print("step     {}\n", format_prediction(prediction, step_tokens(config)));
  const StopTime stop = predicted_stop(config, run, *predicted, *machine);
  fmt::print("{}\n", format_stop(stop, config.grace_period));
  const std::string warning = grace_warning(stop, config.grace_period, "predicted");
  if (!warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
  return predicted;
}

// FLOP/s that a device of the run can reach: as the profile says, or as is printed on its box.
double device_peak(const PlannedRun& run, const std::optional<MachineProfile>& machine) {
  if (machine) return machine->accelerator.peak_flops_per_s;
  if (run.device == nullptr) return 0;
  const auto known = known_peak(run.device->info().name);
  return known ? known->flops_per_s : 0;
}

// What one rank does, from loading the state to the export. The first reports.
class RankOfRun {
 public:
  RankOfRun(const RunConfig& config, const TrainCommand& command, const TrainerOptions& watched,
            const StopSignal& signal)
      : config_(config), command_(command), watched_(watched), signal_(signal) {}

  TrainOutcome train(PlannedRun planned, const SessionOptions& options) const {
    const bool reports = planned.program.rank == 0;
    ByteProgress loading("loading", "state", reports ? stderr : nullptr);
    Session session(config_, std::move(planned), watched_by(loading, options));
    const std::string loaded = loading.finish();
    if (!reports) return train_quietly(session);
    session.check_export(export_target(config_));
    for (const std::string& note : session.notes()) fmt::print("{}\n", note);
    fmt::print("loaded   {}{}\n", loaded,
               config_.world == 1 ? "" : fmt::format(", on each of {} ranks", config_.world));
    Trainer trainer(config_, session, nullptr, watched_);
    // After the Trainer, which may refuse to go on: a refusal leaves the metrics as they are.
    Progress progress(config_.output_dir, terminal_style(stdout), stdout,
                      watched_.resume == nullptr ? -1 : watched_.resume->step);
    trainer.report_to(progress);
    fmt::print("steps    {} ({:.4g} per epoch)\n\n", trainer.total_steps(),
               trainer.steps_per_epoch());
    std::fflush(stdout);
    TrainOutcome outcome = trainer.run(signal_.requested(), signal_.save_requested());
    report(outcome, session.peaks());
    if (exports(outcome)) export_weights(session, outcome);
    if (is_done(outcome)) session.end_durable();
    tell_stop(progress);
    return outcome;
  }

 private:
  static SessionOptions watched_by(ByteProgress& loading, SessionOptions options) {
    options.on_load = loading.watch();
    return options;
  }
  TrainOutcome train_quietly(Session& session) const {
    TrainerOptions options;
    options.resume = watched_.resume;
    options.trace = watched_.trace;
    options.trace_steps = watched_.trace_steps;
    Trainer trainer(config_, session, nullptr, options);
    TrainOutcome outcome = trainer.run(signal_.requested(), signal_.save_requested());
    session.peaks();
    if (exports(outcome)) export_quietly(session, outcome);
    if (is_done(outcome)) session.end_durable();
    return outcome;
  }
  void report(const TrainOutcome& outcome, const std::vector<TierPeak>& peaks) const {
    print_outcome(outcome);
    fmt::print("{}", format_roofline(outcome.roofline));
    if (watched_.trace != nullptr && outcome.steps > 0) fmt::print("trace    {}\n", command_.trace);
    if (const std::string written = format_written(outcome.written); !written.empty())
      fmt::print("{}\n", written);
    print_peaks(peaks, config_.world);
    const bool ended_early = outcome.stopped || !outcome.failure.empty();
    if (ended_early && outcome.durable_step)
      fmt::print("the state after step {} is durable: go on with resume_from_checkpoint=true\n",
                 *outcome.durable_step);
    else if (ended_early && !outcome.checkpoint.empty() && !config_.save_only_model)
      fmt::print("{} stands: go on with resume_from_checkpoint=true\n", outcome.checkpoint);
  }
  void tell_stop(Progress& progress) const {
    if (signal_.number() == 0) return;
    const double took = seconds(now_ns() - signal_.received_ns());
    progress.event(
        "stop", fmt::format("stopped {} after the signal{}", format_seconds(took),
                            config_.grace_period == 0 ? ""
                                                      : fmt::format(", with grace_period: {:.6g}",
                                                                    config_.grace_period)));
  }
  // A run that others want to end leaves its checkpoint, not what takes as long again. One that
  // failed leaves what it has learned, which may be in no checkpoint: the state is whole.
  bool exports(const TrainOutcome& outcome) const {
    const bool did_nothing = watched_.resume != nullptr && outcome.steps == watched_.resume->step;
    if (!outcome.failure.empty()) return outcome.updates > 0;
    if (outcome.stopped && (did_nothing || outcome.durable_step || !outcome.checkpoint.empty()))
      return false;
    return outcome.steps > 0;
  }
  // Nobody will go on from it.
  static bool is_done(const TrainOutcome& outcome) {
    return !outcome.stopped && outcome.failure.empty();
  }
  bool exports_best(const TrainOutcome& outcome) const {
    return config_.load_best_model_at_end && is_done(outcome);
  }
  void export_quietly(Session& session, TrainOutcome& outcome) const {
    if (exports_best(outcome)) {
      BestExport best(config_, session, outcome);
      if (write_best(best, export_target(config_), outcome)) return;
    }
    session.export_to(export_target(config_));
  }
  // Whether a checkpoint's are exported. What goes wrong ends the run as a failure with the last
  // weights.
  static bool write_best(BestExport& best, const std::filesystem::path& target,
                         TrainOutcome& outcome, const ByteWatch& watch = {}) {
    const bool is_written = best.is_of_checkpoint() && best.write(target, watch);
    outcome.failure = best.failure();
    return is_written;
  }
  bool export_best(Session& session, const std::filesystem::path& target,
                   TrainOutcome& outcome) const {
    BestExport best(config_, session, outcome);
    if (!best.text().empty()) fmt::print("best     {}\n", best.text());
    std::fflush(stdout);
    ByteProgress exporting("exporting", "weights");
    if (!write_best(best, target, outcome, exporting.watch())) return false;
    fmt::print("exported {}: {}, the best checkpoint's\n", target.string(), exporting.finish());
    return true;
  }
  void export_weights(Session& session, TrainOutcome& outcome) const {
    const auto target = free_export_target(config_);
    if (exports_best(outcome) && export_best(session, target, outcome)) return;
    ByteProgress exporting("exporting", "weights");
    try {
      session.export_to(target, exporting.watch());
    } catch (const Error& error) {
      if (outcome.failure.empty()) throw;
      throw Error(
          fmt::format("{}; and its weights were not exported: {}", outcome.failure, error.what()));
    }
    fmt::print("exported {}: {}{}\n", target.string(), exporting.finish(),
               outcome.failure.empty() ? "" : ", the weights as they were when the run failed");
  }

  const RunConfig& config_;
  const TrainCommand& command_;
  const TrainerOptions& watched_;
  const StopSignal& signal_;
};

// Whether the run writes a checkpoint even if nobody stops it.
bool saves_surely(const RunConfig& config) {
  const bool is_short =
      config.max_steps > 0 && static_cast<double>(config.max_steps) < config.save_steps;
  return config.save_strategy == SaveStrategy::epoch ||
         (config.save_strategy == SaveStrategy::steps && !is_short);
}

// The same on all processes: the stores of all ranks are taken over, or none.
std::string why_not_in_place(Job& job, const FileSystem& files, const std::vector<PlannedRun>& runs,
                             const ResumePoint& resume) {
  std::string own;
  for (const PlannedRun& run : runs)
    if (own.empty()) own = why_not_in_place(files, run, resume);
  for (const std::string& why : job.exchange(own))
    if (!why.empty()) return why;
  return "";
}

void check_disks(const RunConfig& config, const Job& job, const PlannedRun& run,
                 const std::string& why_not_in_place) {
  const std::vector<DiskDemand> demands = disk_demands(
      config, run,
      {job.num_host_ranks(), saves_surely(config), export_target(config), why_not_in_place});
  check_disk_space(demands);
  const std::string warning = retention_warning(config, demands);
  if (!warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
}

void print_run(const RunConfig& config, const Job& job, const std::vector<PlannedRun>& runs) {
  if (!job.leads()) return;
  warn_of_missing_tokenizer(config);
  print_warnings(data_warnings(config, Purpose::train));
  write_resolved_config(config);
  if (job.world() > 1)
    fmt::print("ranks    {}, ZeRO stage {}\n", job.describe(), config.zero_stage);
  print_plan(config, runs.front());
  fmt::print("saves    {}\n", describe_saves(config, runs.front()));
  print_other_ranks(runs);
  std::fflush(stdout);
}

// Of the weights at the end, of checkpoints of weights alone, and of the config.
std::vector<std::string> clear_exports(const RunConfig& config) {
  const std::string name = export_target(config).filename().string();
  return clear_unfinished_exports(config.output_dir, [&](const std::string& target) {
    return target.starts_with(name) || target.starts_with("checkpoint-") ||
           target == resolved_config_name;
  });
}

// The run that owns the output folder clears what runs before it left unfinished.
std::unique_ptr<OutputOwner> own_output(const RunConfig& config) {
  check_targets(config);
  FileSystem& files = posix_file_system();
  auto owner = OutputOwner::take(files, config.output_dir.string());
  const auto tell = [](const std::string& name) {
    fmt::print("cleared  {}, which a run that ended left unfinished\n", name);
  };
  std::ranges::for_each(clear_unfinished_checkpoints(files, config.output_dir.string()), tell);
  std::ranges::for_each(clear_exports(config), tell);
  // Elsewhere what is not done may be somebody's who lives.
  for (const std::filesystem::path& path : clear_dead_exports(export_target(config)))
    tell(path.string());
  return owner;
}

std::string describe_resume(const ResumePoint& resume) {
  const RunNote* note = resume.note();
  if (note == nullptr) return "no checkpoint";
  return fmt::format("{} after step {}, {} micro-batches", resume.describe(), note->step,
                     note->micro_batches_seen);
}

void tell_resume(const RunConfig& config, const ResumePoint& resume, bool leads) {
  if (!leads) return;
  if (resume.note() != nullptr)
    fmt::print("resume   {}, after step {}{}\n", resume.describe(), resume.note()->step,
               resume.moved_from.empty()
                   ? ""
                   : fmt::format("; this output_dir was {} then", resume.moved_from));
  else if (!config.resume_from_checkpoint.empty())
    fmt::print("resume   no checkpoint in {}: from the beginning\n", config.output_dir.string());
}

int exit_code(const TrainOutcome& outcome, const StopSignal& signal) {
  if (!outcome.stopped) return 0;
  if (outcome.out_of_time) return exit_out_of_time;
  return 128 + (signal.number() != 0 ? signal.number() : SIGTERM);
}

int train(Job& job, const RunConfig& asked, const TrainCommand& command) {
  const std::optional<MachineProfile> machine = run_machine(command, asked);
  const RunConfig config = searched(asked, machine, job.leads());
  const std::unique_ptr<OutputOwner> owner = job.leads() ? own_output(config) : nullptr;
  job.check_alike("output_dir", "been cleared");  // Before anybody looks for checkpoints.
  check_data(config);
  const std::unique_ptr<DriveOwner> drives = own_drives(config, Purpose::train, job);
  SessionOptions shared;
  shared.make_engine = shared_engine(make_offload_engine);
  const Exchange exchange = [&job](const std::string& own) { return job.exchange(own); };
  IoEngine& engine = *shared.make_engine(config.offload);
  const ResumePoint resume = choose_resume_point(config, engine, exchange, job.leads());
  job.check_alike("resume_from_checkpoint (do all hosts share output_dir?)",
                  describe_resume(resume));
  if (resume.checkpoint) shared.resume = resume.checkpoint->path;
  shared.point = &resume;
  std::vector<PlannedRun> runs =
      plan_ranks(config, Purpose::train, job, choose_and_tell_devices(config, job));
  const std::string why = why_not_in_place(job, engine.file_system(), runs, resume);
  if (job.leads()) check_disks(config, job, runs.front(), why);
  print_run(config, job, runs);
  tell_resume(config, resume, job.leads());
  TrainCommand own = command;
  own.trace = rank_trace_path(command.trace, job);
  const std::unique_ptr<TraceFile> trace = open_trace(own.trace);
  const TrainerOptions watched{trace.get(), command.trace_steps,
                               predict(config, runs.front(), machine, job.leads()), resume.note(),
                               device_peak(runs.front(), machine)};
  StopSignal signal;
  const RankOfRun rank(config, own, watched, signal);
  TrainOutcome outcome;
  run_planned(config, job, std::move(runs), shared,
              [&](PlannedRun planned, const SessionOptions& options) {
                const bool is_first = options.links == &job.ranks().front();
                const TrainOutcome of_rank = rank.train(std::move(planned), options);
                if (is_first) outcome = of_rank;
              });
  close_trace(trace.get());
  if (job.leads())
    fmt::print("memory of the whole process: {} at most\n", format_bytes(most_resident_bytes()));
  forget_removed_stores(engine.file_system(), config.output_dir.string(), exchange, job.leads());
  if (!outcome.failure.empty()) throw Error(outcome.failure);
  return exit_code(outcome, signal);
}

int train(const RunOptions& options, const TrainCommand& command) {
  if (command.prints_config) return print_config(read_config(options.file, options.overrides));
  RunConfig config = load_run_config(options);
  Job job(read_launch(), job_options(config));
  config.world = job.world();
  check_train_batch_size(config, config.world);
  return job.guard([&] { return train(job, config, command); });
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
  command->add_flag("--print-config", train_command->prints_config,
                    "Print the resolved config with the origin of each value, and train nothing");
  command->callback([&action, run, train_command] {
    action = [run, train_command] { return train(*run, *train_command); };
  });
}

}  // namespace strata
