// A Prediction as text for people.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strata/core/bytes.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"
#include "strata/plan/prediction.hpp"

namespace strata {
namespace {

constexpr auto right = TextTable::Align::right;
constexpr int bar_columns = 40;
constexpr double seconds_per_day = 86'400;

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string bar(double share) {
  return std::string(
      static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * bar_columns)), '#');
}

// Of what a resource did: comm that only copies within the accelerator moves nothing.
std::string amount(double value, const std::string& unit) {
  return value > 0 ? scaled(value, unit) : "-";
}

const char* unit_of(Resource resource) { return resource == Resource::compute ? "FLOP" : "B"; }

// The parts of the step, compute first; they sum to the step but for waits too short to list.
std::vector<std::pair<std::string, double>> parts_of_step(const Prediction& p) {
  std::vector<std::pair<std::string, double>> parts;
  const double computing = p.simulation.lane_busy[static_cast<std::size_t>(Lane::compute)];
  parts.emplace_back("compute", computing);
  double left = p.simulation.step_seconds - computing;
  for (const ExposedWait& wait : p.waits) {
    parts.emplace_back("wait for " + wait_cause(wait.lane, p.ranks), wait.seconds);
    left -= wait.seconds;
  }
  if (left > 5e-4 * p.simulation.step_seconds) parts.emplace_back("short waits", left);
  return parts;
}

std::string life_text(const DriveWear& wear, double step_seconds) {
  if (wear.life_steps <= 0) return "endurance unknown";
  return fmt::format("{} steps, {} of training without pause", format_grouped(wear.life_steps),
                     format_seconds(wear.life_steps * step_seconds));
}

using TierBytes = std::array<std::uint64_t, num_tiers>;

// What was touched stays, so buffers of loads and saves come on top of all that training touches.
TierBytes held_bytes(const std::vector<PhaseBytes>& phases, const TierLimits& limits) {
  TierBytes held{};
  for (const PhaseBytes& phase : phases)
    for (std::size_t tier = 0; tier < held.size(); ++tier)
      held[tier] = std::max(held[tier], phase.bytes[tier]);
  const auto training = std::ranges::find(phases, "training", &PhaseBytes::name);
  if (training != phases.end())
    held[1] = std::max(held[1], training->bytes[1] + limits.buffer_bytes);
  return held;
}

std::string room(std::uint64_t limit, std::uint64_t used) {
  if (limit == ~std::uint64_t{0}) return "-";
  return used > limit ? format_bytes(used - limit) + " over" : format_bytes(limit - used);
}

std::string format_saving_step(const Prediction& p) {
  if (!p.saving_step) return "";
  std::string text = fmt::format("; a step with a checkpoint takes {} instead of {}",
                                 format_seconds(p.saving_step->seconds),
                                 format_seconds(p.simulation.step_seconds));
  if (p.saving_step->every > 0)
    text += fmt::format(": {:.1f}% of the time with one every {} steps", 100 * p.saving_step->share,
                        format_grouped(static_cast<double>(p.saving_step->every)));
  return text;
}

}  // namespace

std::string format_seconds(double seconds) {
  if (seconds >= 3 * 365 * seconds_per_day)
    return fmt::format("{:.0f} years", seconds / seconds_per_day / 365);
  if (seconds >= 2 * seconds_per_day) return fmt::format("{:.1f} days", seconds / seconds_per_day);
  if (seconds >= 7200) return fmt::format("{:.1f} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.1f} min", seconds / 60);
  if (seconds >= 10) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string format_grouped(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

std::string format_headline(const Prediction& p) {
  const Simulation& s = p.simulation;
  std::string per_rank;
  if (p.ranks > 1)
    per_rank = fmt::format(" ({} per GPU)", format_grouped(p.tokens_per_s() / p.ranks));
  const std::string mfu = p.mfu > 0 ? fmt::format(", MFU {}", percent(p.mfu)) : "";
  return fmt::format("step     {} predicted, {} tokens/s{}{}\nbound    by {}: {} of the step\n",
                     format_seconds(s.step_seconds), format_grouped(p.tokens_per_s()), per_rank,
                     mfu, resource_name(s.bound_by), percent(s.bound_seconds() / s.step_seconds));
}

std::string format_waterfall(const Prediction& p) {
  const double step = p.simulation.step_seconds;
  TextTable table({{fmt::format("where a step's {} go", format_seconds(step))},
                   {"time", right},
                   {"share", right},
                   {""}});
  for (const auto& [name, seconds] : parts_of_step(p))
    table.add_row(
        {"  " + name, format_seconds(seconds), percent(seconds / step), bar(seconds / step)});
  return table.text();
}

std::string format_resources(const Prediction& p) {
  const std::string title =
      p.ranks > 1 ? fmt::format("a step of each of {} ranks", p.ranks) : "a step";
  TextTable table({{title},
                   {"busy", right},
                   {"share", right},
                   {"amount", right},
                   {"achieved", right},
                   {"bound", right}});
  for (const ResourceUse& use : p.resources) {
    const std::string unit = unit_of(use.resource);
    table.add_row({fmt::format("  {}", resource_name(use.resource)),
                   format_seconds(use.busy_seconds),
                   percent(use.busy_seconds / p.simulation.step_seconds), amount(use.amount, unit),
                   amount(use.achieved_per_s, unit + "/s"), amount(use.bound_per_s, unit + "/s")});
  }
  return table.text();
}

std::string format_drives(const Prediction& p) {
  double written = 0;
  const DriveWear* shortest = nullptr;
  for (const DriveWear& drive : p.drives) {
    written += drive.written_bytes;
    const bool wears = drive.written_bytes > 0;
    if (wears && (shortest == nullptr || drive.life_steps < shortest->life_steps))
      shortest = &drive;
  }
  if (shortest == nullptr) return "NVMe     nothing is written in a step\n";
  const double per_day = written * seconds_per_day / p.simulation.step_seconds;
  return fmt::format("NVMe     {} written per step, {} per day over {} drives\nwear     {}\n",
                     scaled(written, "B"), scaled(per_day, "B"), p.drives.size(),
                     life_text(*shortest, p.simulation.step_seconds));
}

std::string format_savings(const Prediction& p) {
  std::string text;
  for (const Saving& saving : p.savings) {
    const bool exports = saving.name == "export";
    text += fmt::format("{:<9}{} of {}", exports ? "export" : "saving",
                        scaled(static_cast<double>(saving.bytes), "B"),
                        exports ? "weights" : "masters and moments");
    if (saving.seconds > 0)
      text += fmt::format(", {} to write on one drive", format_seconds(saving.seconds));
    text += exports ? "\n" : format_saving_step(p) + "\n";
  }
  return text;
}

std::string format_phases(const std::vector<PhaseBytes>& phases, const TierLimits& limits) {
  TextTable table({{"memory touched while"}, {"gpu", right}, {"cpu", right}, {"nvme", right}});
  const auto add = [&](const std::string& name, const TierBytes& bytes) {
    table.add_row({name, format_bytes(bytes[0]), format_bytes(bytes[1]), format_bytes(bytes[2])});
  };
  for (const PhaseBytes& phase : phases) add("  " + phase.name, phase.bytes);
  const TierBytes held = held_bytes(phases, limits);
  add("held at most", held);
  std::uint64_t drives = 0;
  for (const std::uint64_t bytes : limits.drive_bytes) drives += bytes;
  table.add_row({"left of the limit", room(limits.device_bytes, held[0]),
                 room(limits.host_bytes, held[1]),
                 limits.drive_bytes.empty() ? "-" : room(drives, held[2])});
  return table.text();
}

}  // namespace strata
