#include "strata/train/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>

#include "checkpoint/checkpoint_names.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "strata/train/run_steps.hpp"
#include "train/checkpoint_save.hpp"
#include "train/state_pieces.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

std::string newest_of(FileSystem& files, const std::string& directory) {
  const auto entries = list_checkpoints(files, directory);
  return entries.empty() ? "" : entries.back().path;
}

void refuse_unused(const std::string& newest) {
  if (newest.empty()) return;
  throw ConfigError(fmt::format(
      "{} is there, and resume_from_checkpoint is not set: set it to true to go on from there, or "
      "choose another output_dir",
      newest));
}

// Else the next run would go on from a branch that was left.
void refuse_newer(FileSystem& files, const std::string& directory, const CheckpointInfo& resumed) {
  const auto entries = list_checkpoints(files, directory);
  if (entries.empty() || entries.back().step <= resumed.note.step) return;
  throw ConfigError(fmt::format(
      "{} is newer than {}, which the run is to go on from: move it away, or choose another "
      "output_dir",
      entries.back().path, resumed.path));
}

std::string resume_path(const RunConfig& config, FileSystem& files) {
  const std::string directory = config.output_dir.string();
  const std::string newest = newest_of(files, directory);
  if (config.resume_from_checkpoint == "true") return newest;
  if (config.resume_from_checkpoint.empty()) refuse_unused(newest);
  return config.resume_from_checkpoint;
}

std::filesystem::path checkpoint_path(const RunConfig& config, std::int64_t step) {
  return config.output_dir / folder_name(step, FolderState::whole);
}

// Steps of folders with the name of a checkpoint that hold no state, oldest first.
std::vector<std::int64_t> weights_saved(const RunConfig& config) {
  std::vector<std::int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(config.output_dir)) {
    const auto name = parse_folder_name(entry.path().filename().string());
    if (!name || name->state != FolderState::whole ||
        std::filesystem::exists(entry.path() / checkpoint_manifest_name))
      continue;
    steps.push_back(name->step);
  }
  std::ranges::sort(steps);
  return steps;
}

void remove_old_weights(const RunConfig& config, std::int64_t newest) {
  std::vector<std::int64_t> steps = weights_saved(config);
  std::erase_if(steps, [&](std::int64_t step) { return step >= newest; });
  const auto kept = static_cast<std::size_t>(config.save_total_limit - 1);
  for (std::size_t i = 0; i + kept < steps.size(); ++i)
    std::filesystem::remove_all(checkpoint_path(config, steps[i]));
}

// Of new ones: what goes wrong here is told, and no reason to stop.
void look_after_weights(const RunConfig& config, SaveOutcome& outcome) {
  try {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(outcome.path))
      if (entry.is_regular_file()) outcome.bytes += entry.file_size();
    if (config.save_total_limit > 0) remove_old_weights(config, outcome.step);
  } catch (const std::exception& error) {
    outcome.warning =
        fmt::format("{} stands, but an old one may still be there: {}", outcome.path, error.what());
  }
}

// A run cannot go on from them, and another would meet their names.
void refuse_saved_weights(const RunConfig& config) {
  if (config.save_strategy == SaveStrategy::no || !std::filesystem::exists(config.output_dir))
    return;
  const std::vector<std::int64_t> steps = weights_saved(config);
  if (steps.empty()) return;
  throw ConfigError(fmt::format(
      "{} is there, weights that a run with save_only_model left: move it away, or choose another "
      "output_dir",
      checkpoint_path(config, steps.back()).string()));
}

}  // namespace

bool keeps_best(const RunConfig& config) {
  return config.load_best_model_at_end || config.metric_for_best_model != BestMetric::none;
}

std::int64_t checkpoints_kept(const RunConfig& config) {
  return config.save_total_limit == 1 && keeps_best(config) ? 2 : config.save_total_limit;
}

CheckpointDemand checkpoint_demand(const RunConfig& config, const PlannedRun& run) {
  if (config.save_strategy == SaveStrategy::no) return {};
  CheckpointDemand demand;
  if (config.save_only_model)
    demand.bytes = exported_bytes(config, run);
  else
    demand.bytes = checkpoint_bytes(state_vectors(run));
  if (config.save_total_limit > 0)
    demand.bytes_kept = demand.bytes * static_cast<std::uint64_t>(checkpoints_kept(config) + 1);
  return demand;
}

std::unique_ptr<CheckpointReader> open_resume_point(const RunConfig& config, IoEngine& engine) {
  FileSystem& files = engine.file_system();
  refuse_saved_weights(config);
  const std::string path = resume_path(config, files);
  if (path.empty()) return nullptr;
  if (!files.is_directory(path))
    throw ConfigError(fmt::format("resume_from_checkpoint: {} is no folder", path));
  if (!files.exists(fmt::format("{}/{}", path, checkpoint_manifest_name)))
    throw ConfigError(fmt::format(
        "resume_from_checkpoint: {} has no checkpoint.json, so it holds no state to go on from: to "
        "start anew from its weights, give it as model_name_or_path",
        path));
  auto reader = CheckpointReader::open(engine, path);
  refuse_newer(files, config.output_dir.string(), reader->info());
  return reader;
}

bool Checkpoints::is_due(double epochs_before, double epochs, std::int64_t step,
                         std::int64_t total_steps) const {
  switch (config_.save_strategy) {
    case SaveStrategy::no:
      return false;
    case SaveStrategy::steps:
      return step % num_steps(config_.save_steps, total_steps) == 0;
    case SaveStrategy::epoch:
      return ends_epoch(epochs_before, epochs);
  }
  return false;
}

Checkpoints::Checkpoints(const RunConfig& config, Session& session)
    : config_(config), session_(session) {
  // Else there are none.
  const bool goes_on = !config.resume_from_checkpoint.empty() && session.run().program.rank == 0;
  if (goes_on && config.save_total_limit > 0 && keeps_best(config))
    losses_ = held_out_losses(session.engine(), config.output_dir.string());
}

Checkpoints::~Checkpoints() = default;

SaveOutcome Checkpoints::save(const RunNote& note) {
  session_.executor().drain();
  if (config_.save_only_model) return save_weights(note);
  if (open(note)) save_->write_state();
  return complete();
}

std::optional<SaveOutcome> Checkpoints::begin(const RunNote& note) {
  if (!open(note)) return complete();
  save_->take_from_step();
  return {};
}

SaveVote Checkpoints::vote() const { return save_ == nullptr ? SaveVote{} : save_->vote(); }

std::optional<SaveOutcome> Checkpoints::advance(const SaveVote& agreed) {
  save_->advance(agreed);
  if (!save_->is_over()) return {};
  return take_outcome();
}

// Steps that hand it over may still be under way.
SaveOutcome Checkpoints::complete() {
  session_.executor().drain();
  while (!save_->is_over()) save_->advance(settle());
  return take_outcome();
}

bool Checkpoints::can_give_way() const { return save_ != nullptr && save_->is_being_written(); }

void Checkpoints::give_way() {
  save_->give_up();
  complete();
}

bool Checkpoints::open(const RunNote& note) {
  ensure(save_ == nullptr);
  save_ = std::make_unique<CheckpointSave>(config_, session_, note, losses_);
  while (!save_->is_open() && !save_->is_over()) save_->advance(settle());
  return save_->is_open();
}

// Until no rank is busy. Short naps, so that none is taken for lost.
SaveVote Checkpoints::settle() {
  constexpr std::chrono::milliseconds longest_nap(50);
  for (std::chrono::milliseconds nap(1);; nap = std::min(2 * nap, longest_nap)) {
    const SaveVote own = save_->vote();
    const auto [is_busy, has_failed] = session_.any_rank(std::array{own.is_busy, own.has_failed});
    if (!is_busy) return {false, has_failed};
    if (has_failed) save_->advance({is_busy, has_failed});  // What the others write is in vain.
    save_->nap(nap);
  }
}

SaveOutcome Checkpoints::take_outcome() {
  const std::unique_ptr<CheckpointSave> over = std::move(save_);
  return over->outcome();
}

SaveOutcome Checkpoints::save_weights(const RunNote& note) {
  const std::int64_t begin = now_ns();
  SaveOutcome outcome;
  outcome.step = note.step;
  outcome.path = checkpoint_path(config_, note.step).string();
  outcome.failure = write_weights(outcome.path);
  outcome.seconds = seconds(now_ns() - begin);
  if (outcome.failure.empty() && session_.run().program.rank == 0)
    look_after_weights(config_, outcome);
  return outcome;
}

// A folder that others load, and that no run can go on from. Returns why there is none.
std::string Checkpoints::write_weights(const std::string& path) {
  std::string failure;
  try {
    session_.export_to(path);
  } catch (const Error& error) {
    if (session_.run().program.rank > 0) throw;  // The first rank waits for its tiles.
    failure = error.what();
  }
  return session_.first_of_ranks(failure);
}

}  // namespace strata
