#include "strata/train/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <span>

#include "checkpoint/checkpoint_names.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "train/state_pieces.hpp"
#include "train/state_saver.hpp"
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

CheckpointDemand checkpoint_demand(const RunConfig& config, const PlannedRun& run) {
  if (config.save_strategy == SaveStrategy::no) return {};
  CheckpointDemand demand;
  if (config.save_only_model)
    demand.bytes = static_cast<std::uint64_t>(run.model->num_parameters()) *
                   static_cast<std::uint64_t>(
                       dtype_bytes(config.export_dtype.value_or(run.program.contribution_dtype)));
  else
    demand.bytes = checkpoint_bytes(state_vectors(run));
  if (config.save_total_limit > 0)
    demand.bytes_kept = demand.bytes * static_cast<std::uint64_t>(config.save_total_limit + 1);
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

bool Checkpoints::is_due(double epochs_before, double epochs, std::int64_t step) const {
  switch (config_.save_strategy) {
    case SaveStrategy::no:
      return false;
    case SaveStrategy::steps:
      return step % config_.save_steps == 0;
    case SaveStrategy::epoch:
      return std::floor(epochs + 1e-9) > std::floor(epochs_before + 1e-9);
  }
  return false;
}

SaveOutcome Checkpoints::save(const RunNote& note) {
  const std::int64_t begin = now_ns();
  session_.executor().drain();
  SaveOutcome outcome;
  outcome.path = checkpoint_path(config_, note.step).string();
  outcome.bytes = checkpoint_demand(config_, session_.run()).bytes;
  outcome.failure = config_.save_only_model ? write_weights(outcome.path) : write_state(note);
  if (outcome.failure.empty()) outcome.warning = remove_old(note.step);
  outcome.seconds = seconds(now_ns() - begin);
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

// Each stage is tried by every rank, and given up by all where one fails. Returns why.
std::string Checkpoints::write_state(const RunNote& note) {
  const bool commits = session_.run().program.rank == 0;
  const std::vector<StateVector> vectors = state_vectors(session_.run());
  std::unique_ptr<CheckpointWriter> writer;
  std::vector<StatePiece> pieces;
  std::string failure;
  const auto attempt = [&](bool takes_part, const std::function<void()>& stage) {
    if (!failure.empty()) return;
    std::string own;
    try {
      if (takes_part) stage();
    } catch (const Error& error) {
      own = error.what();
    }
    failure = session_.first_of_ranks(own);
  };
  const auto open = [&] {
    writer = CheckpointWriter::open(session_.engine(), config_.output_dir.string(), note.step,
                                    vectors, commits);
  };
  attempt(commits, open);
  attempt(!commits, open);
  attempt(true, [&] {
    save_state(session_.run(), session_.state(), *writer, vectors);
    pieces = writer->finish();
  });
  if (failure.empty()) pieces = pieces_of_ranks(std::move(pieces));
  attempt(commits, [&] { writer->commit(pieces, note); });
  return failure;
}

// Ranks have written different numbers of pieces: all are filled up to the most.
std::vector<StatePiece> Checkpoints::pieces_of_ranks(std::vector<StatePiece> own) {
  const auto counts = session_.gather_over_ranks(std::vector<std::size_t>{own.size()});
  const std::size_t most = *std::ranges::max_element(counts);
  own.resize(most);
  const std::vector<StatePiece> all = session_.gather_over_ranks(std::move(own));
  std::vector<StatePiece> pieces;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const auto of_rank = std::span(all).subspan(rank * most, counts[rank]);
    pieces.insert(pieces.end(), of_rank.begin(), of_rank.end());
  }
  return pieces;
}

// The new one is verified by now: what cannot be removed is told, and no reason to stop.
std::string Checkpoints::remove_old(std::int64_t step) {
  if (session_.run().program.rank != 0 || config_.save_total_limit == 0) return "";
  try {
    if (config_.save_only_model)
      remove_old_weights(config_, step);
    else
      remove_old_checkpoints(session_.engine().file_system(), config_.output_dir.string(),
                             config_.save_total_limit, step);
  } catch (const std::exception& error) {
    return fmt::format("an old checkpoint is still there: {}", error.what());
  }
  return "";
}

}  // namespace strata
