#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/checkpoint_diff.hpp"
#include "cli/byte_progress.hpp"
#include "cli/command.hpp"
#include "cli/weight_dtype.hpp"
#include "strata/checkpoint/best_checkpoint.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/train/checkpoint_export.hpp"
#include "strata/train/durable_state.hpp"

namespace strata {
namespace {

struct CheckpointCommand {
  std::string path, other, target, base, dtype = "bf16";
  bool takes_best = false;  // of the output folder `path`
};

std::unique_ptr<IoEngine> make_reading_engine() { return make_io_engine("auto", {}); }

void refuse_output_dir(FileSystem& files, const std::string& path) {
  if (!files.is_directory(path)) return;
  const auto entries = list_checkpoints(files, path);
  if (!entries.empty())
    throw ConfigError(
        fmt::format("{} is the output folder of a run: name one of its checkpoints, "
                    "the newest is {}",
                    path, entries.back().path));
}

// A checkpoint, or the state that a run with offload.versioned left to its output folder.
std::unique_ptr<CheckpointReader> open_state(IoEngine& engine, const std::string& path) {
  const FileSystem& files = engine.file_system();
  const auto durable = find_durable_point(files, read_state_record(files, path), alone());
  if (!durable) {
    refuse_output_dir(engine.file_system(), path);
    return CheckpointReader::open(engine, path);
  }
  check_unused(durable->stores);
  return open_durable_state(engine, *durable);
}

std::unique_ptr<CheckpointReader> open_best(IoEngine& engine, const std::string& output_dir) {
  const auto best = best_checkpoint(engine, output_dir);
  if (!best)
    throw ConfigError(
        fmt::format("{} has no checkpoint whose held-out loss was taken (eval_strategy, and "
                    "eval_steps of which save_steps is a multiple): name one of its checkpoints",
                    output_dir));
  return CheckpointReader::open(engine, best->entry.path);
}

// What `list` says of the state in versioned stores; empty: there is none.
std::string durable_line(const FileSystem& files, const std::string& output_dir) {
  try {
    const auto point = find_durable_point(files, read_state_record(files, output_dir), alone());
    if (!point) return "";
    return fmt::format("{:<40} step {}, {} updates, every step durable, {} on nvme in {}\n",
                       output_dir, point->note.step, point->note.updates_applied,
                       format_bytes(bytes_of_stores(files, point->stores)), point->describe());
  } catch (const Error& error) {
    return fmt::format("{:<40} DAMAGED: {}\n", output_dir, error.what());
  }
}

// A checkpoint as `list` finds it: what it tells of itself, or what is wrong with it.
struct ListedCheckpoint {
  std::string path;
  std::optional<CheckpointInfo> info;
  std::string damage;
};

ListedCheckpoint look_at(IoEngine& engine, const CheckpointEntry& entry) {
  try {
    return {entry.path, CheckpointReader::open(engine, entry.path)->info(), ""};
  } catch (const Error& error) {
    return {entry.path, std::nullopt, error.what()};
  }
}

std::optional<std::int64_t> best_step_of(const std::vector<ListedCheckpoint>& checkpoints) {
  HeldOutLosses losses;
  for (const auto& [path, info, damage] : checkpoints)
    if (info && info->note.held_out) losses[info->note.step] = *info->note.held_out;
  return best_step(losses);
}

std::string loss_of(const RunNote& note, bool is_best) {
  if (!note.held_out) return "";
  return fmt::format("held-out loss {:.4f}{}, ", note.held_out->loss, is_best ? " (best)" : "");
}

std::string line_of(const ListedCheckpoint& checkpoint, std::optional<std::int64_t> best) {
  const auto& [path, info, damage] = checkpoint;
  if (!info) return fmt::format("{:<40} DAMAGED: {}", path, damage);
  return fmt::format("{:<40} step {}, {} updates, {}{} in {} vectors, by Strata {}", path,
                     info->note.step, info->note.updates_applied,
                     loss_of(info->note, info->note.step == best), format_bytes(info->bytes),
                     info->vectors.size(), info->strata_version);
}

int list(const CheckpointCommand& command) {
  const auto engine = make_reading_engine();
  if (!engine->file_system().is_directory(command.path))
    throw ConfigError(fmt::format("{} is no folder: give the output_dir of a run", command.path));
  std::vector<ListedCheckpoint> checkpoints;
  for (const CheckpointEntry& entry : list_checkpoints(engine->file_system(), command.path))
    checkpoints.push_back(look_at(*engine, entry));
  const std::string durable = durable_line(engine->file_system(), command.path);
  if (checkpoints.empty() && durable.empty()) fmt::print("no checkpoints in {}\n", command.path);
  const auto best = best_step_of(checkpoints);
  for (const ListedCheckpoint& each : checkpoints) fmt::print("{}\n", line_of(each, best));
  fmt::print("{}", durable);
  return 0;
}

int verify(const CheckpointCommand& command) {
  const auto engine = make_reading_engine();
  const auto reader = open_state(*engine, command.path);
  const std::vector<std::string> wrong = reader->verify();
  for (const std::string& what : wrong) fmt::print("FAILED {}\n", what);
  if (!wrong.empty()) throw Error(fmt::format("{} is damaged", command.path));
  fmt::print("{}: {} pieces of {} vectors, {}, all as they were written\n", command.path,
             reader->pieces().size(), reader->info().vectors.size(),
             format_bytes(reader->info().bytes));
  return 0;
}

int export_weights(const CheckpointCommand& command) {
  const auto engine = make_reading_engine();
  const auto reader =
      command.takes_best ? open_best(*engine, command.path) : open_state(*engine, command.path);
  const std::filesystem::path base =
      command.base.empty() ? model_folder_of(*reader) : std::filesystem::path(command.base);
  ByteProgress progress("exporting", "weights");
  export_checkpoint(*reader, base, command.target, parse_weight_dtype(command.dtype),
                    progress.watch());
  fmt::print("exported {} as of step {}: {}\n", command.target, reader->info().note.step,
             progress.finish());
  return 0;
}

int diff(const CheckpointCommand& command) {
  const auto engine = make_reading_engine();
  const auto one = open_state(*engine, command.path);
  const auto other = open_state(*engine, command.other);
  const CheckpointDiff difference = diff_checkpoints(*one, *other);
  fmt::print("{}", difference.text);
  return difference.equal ? 0 : 1;
}

using Work = int (*)(const CheckpointCommand&);

CLI::App* add(CLI::App& command, const std::string& name, const std::string& about, Action& action,
              const std::shared_ptr<CheckpointCommand>& options, Work work) {
  CLI::App* sub = command.add_subcommand(name, about);
  sub->callback([&action, options, work] { action = [options, work] { return work(*options); }; });
  return sub;
}

}  // namespace

void add_checkpoint(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("checkpoint", "List, verify, export and compare a run's checkpoints");
  command->require_subcommand(1);
  auto options = std::make_shared<CheckpointCommand>();
  add(*command, "list", "The checkpoints of an output folder", action, options, list)
      ->add_option("output_dir", options->path)
      ->required();
  add(*command, "verify",
      "Read every byte and compare its checksum: of a checkpoint, or of the stores of an "
      "output folder whose every step is durable",
      action, options, verify)
      ->add_option("checkpoint", options->path)
      ->required();
  CLI::App* exporting = add(*command, "export", "Write the weights as a Hugging Face folder",
                            action, options, export_weights);
  exporting->add_option("checkpoint", options->path, "With --best: the output folder")->required();
  exporting->add_flag("--best", options->takes_best,
                      "Of an output folder's checkpoints that of the least held-out loss");
  exporting->add_option("target", options->target, "Folder to make")->required();
  exporting->add_option("--model", options->base,
                        "Folder with config and tokenizer; default: the run's model_name_or_path");
  exporting->add_option("--dtype", options->dtype)
      ->check(CLI::IsMember({"bf16", "fp32", "f32"}))
      ->capture_default_str();
  CLI::App* comparing =
      add(*command, "diff", "What differs between two checkpoints; exit status 1 if anything does",
          action, options, diff);
  comparing->add_option("checkpoint", options->path)->required();
  comparing->add_option("other", options->other)->required();
}

}  // namespace strata
