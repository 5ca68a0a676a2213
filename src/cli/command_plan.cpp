#include <fmt/format.h>

#include <optional>
#include <utility>

#include "cli/command.hpp"
#include "cli/plan_options.hpp"
#include "cli/plan_output.hpp"
#include "cli/run_options.hpp"
#include "cli/text_file.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/forecast.hpp"
#include "strata/train/session.hpp"

namespace strata {
namespace {

std::string nearest_text(const Scenario& scenario, const TierLimits& limits) {
  const NearestFit nearest = nearest_fit(scenario, limits);
  const std::string keys = nearest.scenario ? changed_keys(scenario, *nearest.scenario) : "";
  if (!keys.empty()) return "the nearest that fits: " + keys;
  return "nothing near fits, neither other tiers, nor fewer slots, nor a smaller micro-batch; the "
         "smallest of them needs " +
         format_fit(nearest.fit);
}

// A refusal, and what would not be refused.
[[noreturn]] void refuse(const OutOfMemory& refusal, const Scenario& scenario,
                         const TierLimits& limits) {
  throw Error(fmt::format("{}\n{}", refusal.what(), nearest_text(scenario, limits)));
}

// With the drives that the config names, where they can serve, though it put nothing on them.
TierLimits limits_here(const RunConfig& config, const Topology& topology,
                       std::optional<std::uint64_t> device_bytes) {
  const auto limits_with = [&](DrivesLimited drives) {
    return rank_limits(config, Purpose::train, topology, config.world, device_bytes, drives);
  };
  try {
    return limits_with(DrivesLimited::all_named);
  } catch (const Error&) {
    return limits_with(DrivesLimited::in_use);
  }
}

// Of each GPU all is counted as free: another run may hold it now. It is not touched.
std::uint64_t device_bytes_here(const RunConfig& config, const DeviceChoice& devices) {
  std::vector<std::uint64_t> bytes;
  for (const CudaDeviceFacts& gpu : devices.gpus)
    bytes.push_back(gpu.memory_bytes -
                    std::min(gpu.memory_bytes, device_workspace_bytes(config.world)));
  return device_limit(config, bytes);
}

PlannedRun planned_here(RunConfig config) {
  const DeviceChoice devices = choose_device_here(config, config.world);
  tell_devices(devices);
  config.device = devices.uses_gpus() ? DeviceKind::gpu : DeviceKind::cpu;
  std::optional<std::uint64_t> device_bytes;
  if (devices.uses_gpus()) device_bytes = device_bytes_here(config, devices);
  const Topology topology = read_topology();
  try {
    const TierLimits limits =
        rank_limits(config, Purpose::train, topology, config.world, device_bytes);
    if (devices.uses_gpus()) return plan_run(config, limits, plan_choice(config), Proof::verified);
    return plan_run(config, Purpose::train, topology, {0, config.world, 0, config.world}, limits);
  } catch (const TierOverflow& refusal) {
    refuse(advised_here(refusal, config, topology.available_memory_bytes, config.world),
           {config, plan_choice(config)}, limits_here(config, topology, device_bytes));
  }
}

// Another run may hold now what this one will have: no reason to refuse the plan.
void warn_of_memory_here(const PlannedRun& planned, const RunConfig& config) {
  try {
    check_host_memory(planned, config.world, read_topology().available_memory_bytes);
  } catch (const OutOfMemory& refusal) {
    fmt::print(stderr, "warning: this machine would not start it now: {}\n", refusal.what());
  }
}

// Of this machine nothing but its memory is known: no times.
int plan_here(const PlanOptions& options) {
  const RunConfig config = plan_config(options, nullptr);
  const PlannedRun planned = planned_here(config);
  warn_of_memory_here(planned, config);
  print_plan(config, planned);
  fmt::print("{}\n", format_phases(
                         phase_bytes(planned.program, planned.plan, run_facts(config, planned, 1)),
                         planned.plan.limits));
  fmt::print("{}", format_step_writes(planned));
  fmt::print("no times: give --machine FILE to have the step's predicted\n");
  if (options.json.empty()) return 0;
  replace_text_file(options.json, plan_to_json(planned.program, planned.plan) + "\n");
  fmt::print("wrote {}\n", options.json);
  return 0;
}

Scenario searched(const Scenario& start, const MachineProfile& machine) {
  const Scenario found = fastest_scenario(start, machine);
  const std::string keys = changed_keys(start, found);
  fmt::print("auto     {}\n", keys.empty() ? "the config's own plan is the fastest found" : keys);
  return found;
}

void warn_of_limit(const char* key, const std::optional<std::uint64_t>& limit,
                   std::uint64_t machine_has) {
  if (!limit || *limit <= machine_has) return;
  fmt::print(stderr,
             "warning: {}: {} is more than the machine gives a run, {}: planned with that\n", key,
             format_bytes(*limit), format_bytes(machine_has));
}

void warn_of_limits(const RunConfig& config, const MachineProfile& machine) {
  warn_of_limit("offload.gpu_limit", config.offload.gpu_limit,
                machine_limits(machine).device_bytes);
  warn_of_limit(
      "offload.cpu_limit", config.offload.cpu_limit,
      machine.host.memory_bytes - host_reserve_bytes(machine.host.memory_bytes, machine.ranks));
}

int plan_for(const PlanOptions& options, const MachineProfile& machine) {
  RunConfig config = plan_config(options, &machine);
  const bool searches = std::exchange(config.offload.automatic, false) || options.searches;
  warn_of_limits(config, machine);
  Scenario scenario = scenario_of(config, machine);
  try {
    if (searches) scenario = searched(scenario, machine);
    const Forecast now = forecast(scenario, machine);
    print_forecast(config, machine, now);
    print_improvements(scenario, improvements(scenario, now, machine));
    if (options.tabulates) print_what_if(scenario, now, machine);
    write_files(options, config, now);
  } catch (const OutOfMemory& refusal) {
    refuse(refusal, scenario, run_limits(scenario.config, machine));
  }
  return 0;
}

int plan(const PlanOptions& options) {
  if (options.prints_config) return print_config(asked_config(options));
  const std::optional<MachineProfile> machine = plan_machine(options);
  return machine ? plan_for(options, *machine) : plan_here(options);
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "plan", "Show what would live where and how fast it would run, without running");
  auto options = add_plan_options(*command);
  command->callback([&action, options] { action = [options] { return plan(*options); }; });
}

}  // namespace strata
