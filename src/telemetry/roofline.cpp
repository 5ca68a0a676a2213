#include "strata/telemetry/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"

namespace strata {
namespace {

using Cells = std::vector<std::string>;

std::string in_seconds(double seconds) {
  return seconds > 0 ? three_digits(seconds) + " s" : std::string("-");
}
std::string in_percent(double part, double whole) {
  return part > 0 && whole > 0 ? fmt::format("{:.0f}%", 100 * part / whole) : "-";
}
std::string in_rate(std::uint64_t bytes, double seconds) {
  if (bytes == 0 || seconds <= 0) return "-";
  return three_digits(static_cast<double>(bytes) / seconds / 1e9) + " GB/s";
}

bool is_idle(const Roofline& roofline, std::size_t i) {
  const bool is_predicted = roofline.predicted && roofline.predicted->full_rate[i] > 0;
  return !is_predicted && roofline.measured.busy[i] <= 0 && roofline.measured.waits[i] <= 0;
}

TextTable make_table(const Roofline& roofline) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns{{"", Align::left}};
  const auto add = [&](const char* title) { columns.push_back({title, Align::right}); };
  if (roofline.predicted)
    for (const char* title : {"full rate", "of step", "busy, predicted"}) add(title);
  for (const char* title : {"busy", "of step", "rate"}) add(title);
  if (roofline.predicted) add("waited for, predicted");
  add("waited for");
  return TextTable(columns);
}

Cells row(const Roofline& roofline, std::size_t i) {
  const StepUse& measured = roofline.measured;
  Cells cells{std::string(resource_name(static_cast<Resource>(i)))};
  const auto add = [&](std::string cell) { cells.push_back(std::move(cell)); };
  if (roofline.predicted) {
    add(in_seconds(roofline.predicted->full_rate[i]));
    add(in_percent(roofline.predicted->full_rate[i], measured.seconds));
    add(in_seconds(roofline.predicted->use.busy[i]));
  }
  add(in_seconds(measured.busy[i]));
  add(in_percent(measured.busy[i], measured.seconds));
  add(in_rate(roofline.bytes[i], measured.transfer[i]));
  if (roofline.predicted) add(in_seconds(roofline.predicted->use.waits[i]));
  add(in_seconds(measured.waits[i]));
  return cells;
}

// Data, logging and what else comes between a step's result and the next step.
Cells loop_row(const Roofline& roofline) {
  Cells cells(roofline.predicted ? 9 : 5, "-");
  cells.front() = "loop";
  cells.back() = in_seconds(roofline.measured.loop);
  return cells;
}

std::string headline(const Roofline& roofline) {
  const double measured = roofline.measured.seconds;
  std::string text =
      fmt::format("step     {} measured (median of {})", in_seconds(measured), roofline.num_steps);
  if (!roofline.predicted) return text + "\n";
  const double predicted = roofline.predicted->use.seconds;
  text += fmt::format(", {} predicted", in_seconds(predicted));
  if (predicted > 0) text += fmt::format(" ({:+.0f}%)", 100 * (measured / predicted - 1));
  return text + fmt::format("; {} of the bound, {} by {}\n",
                            in_percent(roofline.predicted->bound_seconds(), measured),
                            in_seconds(roofline.predicted->bound_seconds()),
                            resource_name(roofline.predicted->bound_by));
}

// "model    385 TFLOP/s on each device, MFU 39% of 989 TFLOP/s"
std::string model_line(const Roofline& roofline) {
  const double rate = roofline.model.flops_per_s(roofline.measured.seconds);
  const double peak = roofline.model.peak_flops_per_s;
  if (rate <= 0) return "";
  return fmt::format(
      "model    {} on each device{}\n", scaled(rate, "FLOP/s"),
      peak > 0 ? fmt::format(", MFU {} of {}", in_percent(rate, peak), scaled(peak, "FLOP/s"))
               : "");
}

// In a step among equal ones: ops of those before and after run within it.
PerResource<double> steady_busy(const Schedule& schedule, const Simulation& simulation) {
  BusyTime busy(schedule);
  const double step = simulation.step_seconds;
  if (step <= 0 || simulation.ops.empty()) return {};
  const double first = std::ranges::min_element(simulation.ops, {}, &OpTime::start)->start;
  const double last = std::ranges::max_element(simulation.ops, {}, &OpTime::end)->end;
  const auto steps_before = static_cast<int>(std::ceil(last / step));
  const auto steps_after = static_cast<int>(std::ceil(-first / step));
  for (int i = -steps_before; i <= steps_after; ++i) busy.add(simulation.ops, i * step);
  return busy.within(0, step);
}

}  // namespace

PerResource<double> waits_by_resource(const std::array<double, num_lanes>& lanes) {
  PerResource<double> waits{};
  for (std::size_t lane = 0; lane < num_lanes; ++lane) {
    const Resource resource = resource_of_lane(static_cast<Lane>(lane));
    if (resource != Resource::compute) waits[static_cast<std::size_t>(resource)] += lanes[lane];
  }
  return waits;
}

StepUse predicted_use(const Schedule& schedule, const Simulation& simulation) {
  StepUse use;
  use.seconds = simulation.step_seconds;
  use.busy = steady_busy(schedule, simulation);
  use.waits = waits_by_resource(simulation.compute_waits);
  return use;
}

Roofline::Prediction prediction_of(const Schedule& schedule, const Simulation& simulation) {
  return {predicted_use(schedule, simulation), simulation.busy, simulation.bound_by};
}

std::string format_prediction(const Roofline::Prediction& predicted, std::int64_t tokens) {
  std::string text = in_seconds(predicted.use.seconds) + " predicted";
  if (predicted.use.seconds > 0)
    text += fmt::format(" ({} tok/s)",
                        three_digits(static_cast<double>(tokens) / predicted.use.seconds));
  return text + fmt::format("; bound {} by {}", in_seconds(predicted.bound_seconds()),
                            resource_name(predicted.bound_by));
}

std::string format_roofline(const Roofline& roofline) {
  if (roofline.num_steps == 0) return "";
  TextTable table = make_table(roofline);
  for (std::size_t i = 0; i < num_resources; ++i)
    if (!is_idle(roofline, i)) table.add_row(row(roofline, i));
  if (roofline.measured.loop > 0) table.add_row(loop_row(roofline));
  return headline(roofline) + model_line(roofline) + table.text();
}

}  // namespace strata
