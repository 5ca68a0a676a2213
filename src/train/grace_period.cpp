#include "strata/train/grace_period.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/plan/prediction.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/forecast.hpp"

namespace strata {
namespace {

bool saves_state(const RunConfig& config) {
  return config.save_strategy != SaveStrategy::no && !config.save_only_model;
}

// Seconds per byte; 0: the machine has no drives.
double slowest(const MachineProfile& machine, double DriveProfile::*rate) {
  double seconds = 0;
  for (const DriveProfile& drive : machine.drives)
    if (drive.*rate > 0) seconds = std::max(seconds, 1 / (drive.*rate));
  return seconds;
}

bool fits(const StopTime& stop, double grace_period) { return stop.seconds() <= grace_period; }

}  // namespace

StopTime predicted_stop(const RunConfig& config, const PlannedRun& run, double step_seconds,
                        const MachineProfile& machine) {
  double seconds_per_byte = slowest(machine, &DriveProfile::write_bytes_per_s);
  if (saves_state(config)) seconds_per_byte += slowest(machine, &DriveProfile::read_bytes_per_s);
  // The last step is durable already.
  if (config.offload.versioned && config.save_strategy == SaveStrategy::no)
    return {step_seconds, 0, true};
  const std::uint64_t bytes = config.save_strategy == SaveStrategy::no
                                  ? run_facts(config, run, 1).export_bytes
                                  : checkpoint_demand(config, run).bytes;
  return {step_seconds, static_cast<double>(bytes) * seconds_per_byte};
}

std::string format_stop(const StopTime& stop, double grace_period) {
  if (!stop.is_known()) return "stop     not known: the machine has no drive to save to";
  std::string text =
      fmt::format("stop     {}: {} to end a step, {} to save", format_seconds(stop.seconds()),
                  format_seconds(stop.step_seconds), format_seconds(stop.save_seconds));
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
