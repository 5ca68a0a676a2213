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
#include "strata/io/store/shard_store.hpp"
#include "strata/topology/topology.hpp"
#include "strata/train/forecast.hpp"

namespace strata {
namespace {

// A refusal, and what would not be refused.
[[noreturn]] void refuse(const OutOfMemory& refusal, const Scenario& scenario,
                         const TierLimits& limits) {
  const std::optional<Scenario> fits = nearest_fit(scenario, limits);
  throw Error(fmt::format(
      "{}\n{}", refusal.what(),
      fits ? "the nearest that fits: " + changed_keys(scenario, *fits)
           : "nothing near fits: neither other tiers, nor fewer slots, nor a micro-batch of 1"));
}

// What this machine's memory allows; drives count where the config names some.
TierLimits limits_here(const RunConfig& config, std::optional<std::uint64_t> device_bytes) {
  const std::uint64_t available = read_topology().available_memory_bytes;
  TierLimits limits;
  limits.device_bytes = device_bytes.value_or(config.offload.gpu_limit.value_or(available));
  limits.host_bytes = config.offload.cpu_limit.value_or(available);
  for (const std::string& path : config.offload.nvme_paths)
    limits.drive_bytes.push_back(available_drive_bytes(path));
  limits.drive_weights = config.offload.nvme_weights;
  return limits;
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
  if (!devices.warning.empty()) fmt::print(stderr, "warning: {}\n", devices.warning);
  config.device = devices.uses_gpus() ? DeviceKind::gpu : DeviceKind::cpu;
  std::optional<std::uint64_t> device_bytes;
  if (devices.uses_gpus()) device_bytes = device_bytes_here(config, devices);
  const Topology topology = read_topology();
  try {
    const TierLimits limits =
        rank_limits(config, Purpose::train, topology, config.world, device_bytes);
    if (devices.uses_gpus()) return plan_run(config, limits, plan_choice(config), Proof::verified);
    return plan_run(config, Purpose::train, topology, {0, config.world, 0, config.world}, limits);
  } catch (const OutOfMemory& refusal) {
    refuse(refusal, {config, plan_choice(config)}, limits_here(config, device_bytes));
  }
}

// Of this machine nothing but its memory is known: no times.
int plan_here(const PlanOptions& options) {
  const RunConfig config = plan_config(options, nullptr);
  const PlannedRun planned = planned_here(config);
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
  const TierLimits own = machine_limits(machine);
  warn_of_limit("offload.gpu_limit", config.offload.gpu_limit, own.device_bytes);
  warn_of_limit("offload.cpu_limit", config.offload.cpu_limit,
                own.host_bytes * static_cast<std::uint64_t>(machine.ranks));
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
    refuse(refusal, scenario, run_limits(config, machine));
  }
  return 0;
}

int plan(const PlanOptions& options) {
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
