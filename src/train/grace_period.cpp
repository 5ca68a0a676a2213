#include "strata/train/grace_period.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "strata/plan/prediction.hpp"
#include "strata/train/checkpoints.hpp"
#include "train/state_pieces.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

// Of the drive's own rates, by whole saves (bench/save_rate: 0.8 to 0.9) after which one that was
// under way had to be removed first (bench/stop_times).
constexpr double save_efficiency = 0.7;
// Who is killed when the time is over cannot be late: a machine with other work on it is slower
// than its profile.
constexpr double caution = 1.2;

// Weights in fp32 are the masters; a split master is joined with its weight.
std::vector<Role> roles_to_read(const RunConfig& config, const PlannedRun& run) {
  if (!saves_state(config) && exported_dtype(config, run) != DType::f32) return {Role::weight};
  std::vector<Role> roles = {Role::master};
  if (saves_state(config)) roles.insert(roles.end(), {Role::moment1, Role::moment2});
  if (has_split_master(run.program)) roles.push_back(Role::weight);
  return roles;
}

std::uint64_t own_bytes_on_nvme(const PlannedRun& run, const Shard& shard) {
  std::uint64_t bytes = 0;
  for (int tile = 0; tile < run.program.num_tiles(shard.id); ++tile) {
    const Region& home = run.plan.homes[shard.id.index()][static_cast<std::size_t>(tile)];
    if (home.tier == Tier::nvme && run.program.is_own(shard.id, tile)) bytes += home.bytes;
  }
  return bytes;
}

double bytes_to_read(const RunConfig& config, const PlannedRun& run) {
  const std::vector<Role> roles = roles_to_read(config, run);
  std::uint64_t bytes = 0;
  for (const Shard& shard : run.program.shards)
    if (std::ranges::count(roles, shard.role) > 0) bytes += own_bytes_on_nvme(run, shard);
  return static_cast<double>(bytes);
}

// As if nothing was done at the same time.
double seconds_to_save(std::uint64_t bytes, const RunConfig& config, const PlannedRun& run,
                       const MachineProfile& machine) {
  const int index = machine.saving_drive();
  if (index < 0) return 0;
  const DriveProfile& drive = machine.drives[static_cast<std::size_t>(index)];
  const double seconds = static_cast<double>(bytes) / drive.new_file_rate() +
                         static_cast<double>(bytes) / drive.read_bytes_per_s;
  // Each rank reads its tiles one after the other, whichever drive they are on.
  const int ranks = std::max(1, machine.ranks);
  const int readers = std::min(ranks, static_cast<int>(machine.drives.size()));
  const auto reads = std::ranges::min(machine.drives, {}, &DriveProfile::read_bytes_per_s);
  const double reading = ranks * bytes_to_read(config, run) / (readers * reads.read_bytes_per_s);
  return (seconds + reading) / save_efficiency;
}

double longest_step_seconds(const PlannedRun& run, const Simulation& simulated,
                            const MachineProfile& machine) {
  double seconds = simulated.step_seconds;
  for (const OpTime& op : simulated.ops) seconds = std::max(seconds, op.end);
  if (run.plan.schedule("train_save") == nullptr) return seconds;
  return std::max(seconds, seconds_alone(run.program, run.plan, "train_save", machine));
}

bool fits(const StopTime& stop, double grace_period) { return stop.seconds() <= grace_period; }

}  // namespace

StopTime predicted_stop(const RunConfig& config, const PlannedRun& run, double step_seconds,
                        const MachineProfile& machine) {
  const double step = caution * step_seconds;
  // The last step is durable already.
  if (config.offload.versioned && config.save_strategy == SaveStrategy::no) return {step, 0, true};
  const std::uint64_t bytes = config.save_strategy == SaveStrategy::no
                                  ? exported_bytes(config, run)
                                  : checkpoint_demand(config, run).bytes;
  return {step, caution * seconds_to_save(bytes, config, run, machine)};
}

StopTime predicted_stop(const RunConfig& config, const PlannedRun& run, const Simulation& simulated,
                        const MachineProfile& machine) {
  return predicted_stop(config, run, longest_step_seconds(run, simulated, machine), machine);
}

std::string format_stop(const StopTime& stop, double grace_period) {
  if (!stop.is_known()) return "stop     not known: the machine has no drive to save to";
  std::string text = fmt::format("stop     {} at most: {} to end a step, {} to save",
                                 format_seconds(stop.seconds()), format_seconds(stop.step_seconds),
                                 format_seconds(stop.save_seconds));
  if (grace_period == 0) return text + "; what the scheduler gives is not told (grace_period)";
  return text + fmt::format("; {} grace_period: {:.6g}",
                            fits(stop, grace_period) ? "fits in" : "does NOT fit in", grace_period);
}

std::string grace_warning(const StopTime& stop, double grace_period, const std::string& source) {
  if (grace_period == 0 || !stop.is_known() || fits(stop, grace_period)) return "";
  return fmt::format(
      "ending this run is {} to take {} ({} to end a step, {} to save), more than grace_period: "
      "{:.6g}: it may be killed before its checkpoint stands, and go on from the one before. Have "
      "the scheduler send the signal earlier, or {}",
      source, format_seconds(stop.seconds()), format_seconds(stop.step_seconds),
      format_seconds(stop.save_seconds), grace_period,
      stop.step_seconds > stop.save_seconds
          ? "lower gradient_accumulation_steps, and save more often (save_steps)"
          : "name an output_dir on a faster drive, and save more often (save_steps)");
}

}  // namespace strata
