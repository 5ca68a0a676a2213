#include "train/durable_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "io/store/store_files.hpp"
#include "strata/core/error.hpp"
#include "train/state_tiles.hpp"

namespace strata {
namespace {

bool has_versions(const Shard& shard) {
  return shard.role == Role::master || shard.role == Role::moment1 || shard.role == Role::moment2;
}

StoreOptions options_of(Verify verify) {
  return {.checksums = Checksums::on, .verify = verify, .hash_threads = 1};
}

bool is_same(const TileExtent& found, const StoreTile& wanted) {
  return found.tile.name == wanted.name && found.tile.bytes == wanted.bytes &&
         found.tile.drive == wanted.drive;
}

// Of one rank with these tiles; empty: nothing is.
std::string what_is_other(const FileSystem& files, const StateStores& from, const StateStores& to,
                          int rank, std::span<const StoreTile> tiles) {
  if (from.world != to.world)
    return fmt::format("the number of ranks was {} and is {}", from.world, to.world);
  if (from.directories != to.directories)
    return fmt::format("its drives were {} and are {}", from.drives(), to.drives());
  if (!files.is_directory(from.path(rank)))
    return fmt::format("{} is on another host", from.path(rank));
  const StoreDescription found = read_description(files, from.path(rank)).part.store;
  if (std::ranges::equal(found.tiles, tiles, is_same)) return "";
  return "its tiles are cut otherwise (offload.tile_bytes, zero_stage, optim or "
         "optimizer_moments)";
}

}  // namespace

std::string why_not_in_place(const FileSystem& files, const PlannedRun& run,
                             const ResumePoint& point) {
  if (!point.durable) return "";
  if (!run.plan.policy.versioned_state) return "offload.versioned is false now";
  return what_is_other(files, point.durable->stores, point.stores, run.program.rank,
                       split_nvme_tiles(run).state);
}

NvmeSplit split_nvme_tiles(const PlannedRun& run) {
  const NvmeTiles all(run.program, run.plan);
  std::vector<std::string> names(all.tiles().size());  // of those with versions
  for (const Shard& shard : run.program.shards) {
    if (!has_versions(shard)) continue;
    for (int tile = 0; tile < run.program.num_tiles(shard.id); ++tile)
      names[static_cast<std::size_t>(all.index(shard.id, tile))] =
          state_tile_name(state_tile(run.program, shard.id, tile));
  }
  NvmeSplit split;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const StoreTile& tile = all.tiles()[i];
    split.has_versions.push_back(!names[i].empty());
    if (names[i].empty())
      split.scratch.push_back(tile);
    else
      split.state.push_back({names[i], tile.bytes, tile.drive});
  }
  return split;
}

DurableRun::DurableRun(const RunConfig& config, const PlannedRun& run, IoEngine& engine,
                       std::vector<StoreTile> tiles, const ResumePoint& point)
    : stops_at_bad_steps_(config.non_finite == NonFinitePolicy::stop),
      directory_(std::filesystem::absolute(config.output_dir).lexically_normal().string()),
      rank_(run.program.rank),
      engine_(engine),
      tiles_(std::move(tiles)),
      point_(point) {}

bool DurableRun::can_adopt() const {
  return point_.durable &&
         what_is_other(engine_.file_system(), point_.durable->stores, point_.stores, rank_, tiles_)
             .empty();
}

std::unique_ptr<ShardStore> DurableRun::adopt(Verify verify) {
  is_adopted_ = true;
  return ShardStore::open(engine_, point_.durable->stores.path(rank_), options_of(verify),
                          point_.durable->version);
}

std::unique_ptr<ShardStore> DurableRun::create(Verify verify) {
  if (point_.durable) check_readable_here(engine_.file_system(), point_.durable->stores);
  StoreSpec spec;
  spec.kind = StoreKind::versioned;
  spec.name = point_.stores.name(rank_);
  spec.directories = point_.stores.directories;
  spec.tiles = tiles_;
  return ShardStore::create(engine_, spec, options_of(verify));
}

void DurableRun::begin(ShardStore& store, const RunNote& note,
                       std::int64_t micro_batches_per_step) {
  store_ = &store;
  note_ = {directory_, note};
  micro_batches_per_step_ = micro_batches_per_step;
  const auto step = static_cast<std::uint64_t>(note.step);
  if (store.committed_version() != step) store.commit(step, durable_note_text(note_));
}

// A step that ends the run is as if it had not been: its updates kept every byte.
void DurableRun::commit(const StepArgs& args, bool applied) {
  if (!applied && stops_at_bad_steps_) return;
  RunNote& note = note_.note;
  note.step = args.index + 1;
  note.updates_applied += applied ? 1 : 0;
  note.skipped_steps += applied ? 0 : 1;
  note.micro_batches_seen += micro_batches_per_step_;
  store_->commit(static_cast<std::uint64_t>(note.step), durable_note_text(note_));
}

}  // namespace strata
