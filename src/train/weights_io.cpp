#include "train/weights_io.hpp"

#include <fmt/format.h>

#include <chrono>

#include "train/heartbeat.hpp"
#include "train/tile_exchange.hpp"
#include "train/tile_source.hpp"
#include "train/weights_loader.hpp"

namespace strata {
namespace {

std::string model_card(const std::filesystem::path& base, const PlannedRun& run) {
  return fmt::format(
      "# {}\n\nFine-tuned with Strata from the weights in `{}`.\n\n- parameters: {}\n- plan: "
      "{:016x}\n",
      base.filename().string(), base.filename().string(), run.model->num_parameters(),
      plan_hash(run.program, run.plan));
}

ExportOptions export_options(const RunConfig& config, const PlannedRun& run) {
  ExportOptions options;
  options.dtype = exported_dtype(config, run);
  options.card = model_card(config.model_name_or_path, run);
  return options;
}

// After a failure of the first rank's: the others need not wait for more. Where the job has failed
// they do not.
void release(TileExchange& tiles) {
  try {
    tiles.finish();
  } catch (const Error&) {
  }
}

}  // namespace

DType exported_dtype(const RunConfig& config, const PlannedRun& run) {
  return config.export_dtype.value_or(run.program.contribution_dtype);
}

std::uint64_t exported_bytes(const RunConfig& config, const PlannedRun& run) {
  return static_cast<std::uint64_t>(run.model->num_parameters() *
                                    dtype_bytes(exported_dtype(config, run)));
}

std::uint64_t load_buffer_bytes(const Program& program) {
  return WeightsLoader::buffer_bytes(program);
}

// Tiles, a piece as fp32 and as it is written, and what is read back.
std::uint64_t export_buffer_bytes(const Program& program, DType dtype) {
  return TileSource::buffer_bytes(program) +
         static_cast<std::uint64_t>(tensor_source_elements *
                                    (dtype_bytes(DType::f32) + dtype_bytes(dtype))) +
         export_read_back_bytes;
}

std::uint64_t held_bytes(const PlannedRun& run, Role role) {
  std::uint64_t bytes = 0;
  for (const Shard& shard : run.program.shards)
    if (shard.role == role)
      for (const Region& home : run.plan.homes[shard.id.index()]) bytes += home.bytes;
  return bytes;
}

std::uint64_t held_state_bytes(const PlannedRun& run) {
  std::uint64_t bytes = 0;
  for (const Role role : {Role::weight, Role::master, Role::moment1, Role::moment2})
    bytes += held_bytes(run, role);
  return bytes;
}

void load_weights(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state) {
  WeightsLoader(folder, run, state).load();
}

void check_export_weights(const RunConfig& config, const std::filesystem::path& target,
                          const PlannedRun& run) {
  check_export(config.model_name_or_path, target, expected_tensors(*run.model),
               export_options(config, run));
}

void export_weights(const RunConfig& config, const std::filesystem::path& target,
                    const PlannedRun& run, StateAccess& state, Communicator* control,
                    const ByteWatch& watch) {
  TileExchange tiles(run.program, state, control);
  if (run.program.rank > 0) return tiles.serve();
  TileSource source(run, tiles);
  try {
    ExportOptions options = export_options(config, run);
    options.watch = watch;
    // Flushing a large folder takes minutes.
    const Heartbeat heartbeat(beat_pause, [&] { tiles.keep_waiting(); });
    export_hf_folder(
        config.model_name_or_path, target, expected_tensors(*run.model),
        [&](const std::string& name, std::int64_t first, DType dtype, std::span<std::byte> bytes) {
          source.read(name, first, dtype, bytes);
        },
        options);
  } catch (...) {
    release(tiles);
    throw;
  }
  tiles.finish();
}

}  // namespace strata
