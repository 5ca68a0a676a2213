#include "cli/plan_output.hpp"

#include <fmt/format.h>

#include "cli/run_options.hpp"
#include "cli/text_file.hpp"
#include "strata/core/digits.hpp"
#include "strata/core/text_table.hpp"
#include "strata/plan/plan_picture.hpp"
#include "strata/telemetry/trace.hpp"
#include "strata/train/grace_period.hpp"

namespace strata {
namespace {

constexpr auto right = TextTable::Align::right;

std::string machine_text(const MachineProfile& machine) {
  const std::string count = machine.ranks > 1 ? fmt::format("{} x ", machine.ranks) : "";
  return fmt::format("{} ({}{})", machine.name, count, machine.accelerator.name);
}

std::string title_of(const RunConfig& config, const Forecast& forecast) {
  const std::filesystem::path& path = config.model_name_or_path;
  const std::string model =
      path.filename().empty() ? path.parent_path().filename().string() : path.filename().string();
  const Prediction& p = forecast.prediction;
  return fmt::format("{} on {}: one step of {}{}, predicted", model, p.machine,
                     format_seconds(p.simulation.step_seconds),
                     p.ranks > 1 ? fmt::format(" (one of {} ranks)", p.ranks) : "");
}

std::vector<std::string> cells_of(const std::string& name, const Trial& trial,
                                  const std::string& note) {
  if (!trial.fits()) return {"  " + name, "-", "-", "-", trial.refusal};
  return {"  " + name, format_seconds(trial.step_seconds), format_grouped(trial.tokens_per_s),
          fmt::format("{:.1f}%", 100 * trial.mfu),
          fmt::format("{}{}", resource_name(trial.bound_by), note.empty() ? "" : "; " + note)};
}

Trial trial_of(const Forecast& forecast) {
  const Prediction& p = forecast.prediction;
  return {"", p.simulation.step_seconds, p.tokens_per_s(), p.mfu, p.simulation.bound_by};
}

void write_trace(const std::string& path, const Forecast& forecast) {
  TraceFile trace(path);
  trace.name_process(0, "rank 0, predicted");
  const PlannedRun& run = forecast.run;
  const Simulation& simulation = forecast.prediction.simulation;
  trace_steps(trace, 0, run.program, run.plan, *run.plan.schedule("train"), simulation.ops, 0,
              simulation.step_seconds);
  trace.close();
}

}  // namespace

std::string format_step_writes(const PlannedRun& run) {
  const std::uint64_t bytes = nvme_traffic(run.plan, "train").written_bytes();
  if (bytes == 0) return "";
  const int ranks = run.program.world;
  return fmt::format("NVMe     {} written per step{}\n", scaled(static_cast<double>(bytes), "B"),
                     ranks > 1 ? fmt::format(" by each of {} ranks", ranks) : "");
}

void print_forecast(const RunConfig& config, const MachineProfile& machine,
                    const Forecast& forecast) {
  const PlannedRun& run = forecast.run;
  const Prediction& p = forecast.prediction;
  fmt::print("fits     yes, on {}\n{}\n", machine_text(machine), format_headline(p));
  if (p.ranks > 1) fmt::print("The tables show one rank of {}; all are alike.\n", p.ranks);
  print_plan(config, run);
  fmt::print("{}\n", format_phases(p.phases, run.plan.limits));
  fmt::print("{}\n", format_waterfall(p));
  fmt::print("{}\n", format_resources(p));
  fmt::print("{}{}", format_drives(p), format_savings(p));
  const StopTime stop = predicted_stop(config, run, p.simulation, machine);
  fmt::print("{}\n\n", format_stop(stop, config.grace_period));
}

void print_improvements(const Scenario& from, const std::vector<Improvement>& found) {
  if (found.empty()) {
    fmt::print("what would help: no change that was tried makes it faster and still fits\n");
    return;
  }
  fmt::print("what would help most\n");
  for (const auto& [neighbour, gain] : found)
    fmt::print("  {:+.1f}%  {}{}\n          {}\n", 100 * gain, neighbour.name,
               neighbour.note.empty() ? "" : " (" + neighbour.note + ")",
               changed_keys(from, neighbour.scenario));
}

void print_what_if(const Scenario& scenario, const Forecast& now, const MachineProfile& machine) {
  TextTable table(
      {{"what if"}, {"step", right}, {"tokens/s", right}, {"MFU", right}, {"bound by"}});
  table.add_row(cells_of("as planned", trial_of(now), ""));
  for (const Neighbour& neighbour : what_if_neighbours(scenario, machine))
    table.add_row(cells_of(neighbour.name, try_out(neighbour.scenario, machine), neighbour.note));
  fmt::print("\n{}", table.text());
}

void write_files(const PlanOptions& options, const RunConfig& config, const Forecast& forecast) {
  const PlannedRun& run = forecast.run;
  if (!options.json.empty()) {
    replace_text_file(options.json,
                      plan_to_json(run.program, run.plan, forecast.prediction) + "\n");
    fmt::print("wrote {}\n", options.json);
  }
  if (!options.trace.empty()) {
    write_trace(options.trace, forecast);
    fmt::print("wrote {}\n", options.trace);
  }
  if (!options.svg.empty()) {
    replace_text_file(options.svg,
                      draw_plan(run.program, run.plan, "train", forecast.prediction.simulation,
                                title_of(config, forecast)));
    fmt::print("wrote {}\n", options.svg);
  }
}

}  // namespace strata
