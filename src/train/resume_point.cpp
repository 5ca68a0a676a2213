#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "strata/core/error.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/durable_state.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

StateStores new_stores(const RunConfig& config) {
  StateStores stores;
  std::random_device random;
  stores.id = fmt::format("{:08x}{:08x}", random(), random());
  stores.world = config.world;
  for (const std::string& path : config.offload.nvme_paths) {
    std::string directory = fs::absolute(path).lexically_normal().string();
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    stores.directories.push_back(directory);
  }
  return stores;
}

fs::path normal(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

void refuse_unused(const DurablePoint& durable) {
  throw ConfigError(fmt::format(
      "the state after step {} of this output_dir's run is in {}, and resume_from_checkpoint is "
      "not set: set it to true to go on from there, or choose another output_dir",
      durable.version, durable.describe()));
}

// Whether a folder's record says that it is its runs that the stores belong to.
bool has_state(const FileSystem& files, const fs::path& output_dir, const StateStores& stores) {
  try {
    return read_state_record(files, output_dir.string()).current.id == stores.id;
  } catch (const FormatError&) {
    return true;  // It cannot be told.
  }
}

// A folder that was moved takes its state along: its old name is gone, or is another folder's by
// now. Of a copy and its original, one alone can go on. Returns the old name; empty: it is the
// same.
std::string moved_from(const FileSystem& files, const RunConfig& config,
                       const DurablePoint& durable) {
  const fs::path own = normal(config.output_dir), noted(durable.output_dir);
  std::error_code elsewhere;
  if (own == noted || fs::equivalent(own, noted, elsewhere)) return "";
  if (!has_state(files, noted, durable.stores)) return noted.string();
  throw ConfigError(fmt::format(
      "the state in {} is that of the run in {}, of which {} is a copy: set output_dir to {} to go "
      "on from it; or remove versioned_state.json in {} to begin anew there, or in {} if that one "
      "is given up",
      durable.describe(), noted.string(), own.string(), noted.string(), own.string(),
      noted.string()));
}

// What the config names takes the place of the state that is there.
void check_named(const RunConfig& config, const DurablePoint& durable,
                 const CheckpointInfo& named) {
  const bool is_older = named.note.step < static_cast<std::int64_t>(durable.version);
  const bool is_own = normal(named.path).parent_path() == normal(config.output_dir);
  if (is_own && !is_older) return;
  throw ConfigError(
      fmt::format("the state after step {} of this output_dir's run is in {}, {} {}: set "
                  "resume_from_checkpoint to true to go on from it, or choose another output_dir",
                  durable.version, durable.describe(),
                  is_own ? "which is newer than" : "and would be given up for", named.path));
}

// Which of the two a run goes on from; the other is given up.
void choose(const RunConfig& config, ResumePoint& point) {
  if (!point.durable) return;
  const auto step = static_cast<std::int64_t>(point.durable->version);
  const std::optional<CheckpointInfo>& checkpoint = point.checkpoint;
  const bool is_named = config.resume_from_checkpoint != "true";
  if (is_named) check_named(config, *point.durable, *checkpoint);
  const bool keeps = checkpoint && (is_named || checkpoint->note.step > step);
  keeps ? point.durable.reset() : point.checkpoint.reset();
}

// Before anything is made or removed: a run that dies here leaves what it found.
StateRecord next_record(const StateRecord& found, const RunConfig& config,
                        const ResumePoint& point) {
  StateRecord record;
  if (config.offload.versioned) record.next = point.stores;
  for (const StateStores& stores : found.others) record.others.push_back(stores);
  if (!found.next.id.empty()) record.others.push_back(found.next);
  // A run of other means leaves the stores that it does not go on from to the next one.
  const bool keeps = point.durable.has_value() || !config.offload.versioned;
  if (keeps)
    record.current = found.current;
  else if (!found.current.id.empty())
    record.others.push_back(found.current);
  return record;
}

// Those that are gone from the drives of all hosts then leave the record. Returns whether any does.
bool remove_others(FileSystem& files, StateRecord& record, const Exchange& exchange) {
  if (record.others.empty()) return false;
  std::string left;
  for (const StateStores& stores : record.others)
    if (!remove_stores(files, stores)) left += stores.id + " ";
  const std::vector<std::string> lefts = exchange(left);
  return std::erase_if(record.others, [&](const StateStores& stores) {
           return std::ranges::none_of(lefts, [&](const std::string& text) {
             return text.find(stores.id) != std::string::npos;
           });
         }) > 0;
}

}  // namespace

const RunNote* ResumePoint::note() const {
  if (durable) return &durable->note;
  return checkpoint ? &checkpoint->note : nullptr;
}

std::string ResumePoint::describe() const {
  if (durable) return durable->describe();
  return checkpoint ? checkpoint->path : "nothing";
}

ResumePoint choose_resume_point(const RunConfig& config, IoEngine& engine, const Exchange& exchange,
                                bool leads) {
  FileSystem& files = engine.file_system();
  const std::string output_dir = config.output_dir.string();
  const StateRecord found = read_state_record(files, output_dir);
  ResumePoint point;
  point.durable = find_durable_point(files, found, exchange);
  if (point.durable) point.moved_from = moved_from(files, config, *point.durable);
  if (point.durable && config.resume_from_checkpoint.empty()) refuse_unused(*point.durable);
  if (const auto reader = open_resume_point(config, engine)) point.checkpoint = reader->info();
  choose(config, point);
  if (config.offload.versioned) point.stores = new_stores(config);
  const bool is_new = config.offload.versioned || !found.next.id.empty() || !found.others.empty();
  exchange("looked");  // Nobody may find what the first has written meanwhile.
  if (leads && is_new) write_state_record(files, output_dir, next_record(found, config, point));
  exchange("recorded");
  if (config.offload.versioned) point.stores = read_state_record(files, output_dir).next;
  forget_removed_stores(files, output_dir, exchange, leads);
  return point;
}

void forget_removed_stores(FileSystem& files, const std::string& output_dir,
                           const Exchange& exchange, bool leads) {
  StateRecord record = read_state_record(files, output_dir);
  const bool changes = remove_others(files, record, exchange);
  if (changes && leads) write_state_record(files, output_dir, record);
}

}  // namespace strata
