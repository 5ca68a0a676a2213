#include "strata/plan/prediction.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/saved_state.hpp"

namespace strata {
namespace {

constexpr double shortest_wait = 5e-4;  // of a step: shorter ones are left out

std::vector<ResourceUse> resource_uses(const Simulation& simulation) {
  std::vector<ResourceUse> uses;
  for (std::size_t r = 0; r < simulation.busy.size(); ++r) {
    const double busy = simulation.busy[r];
    if (busy <= 0) continue;
    ResourceUse use{static_cast<Resource>(r), busy};
    use.amount = use.resource == Resource::compute ? simulation.flops
                                                   : static_cast<double>(simulation.bytes[r]);
    use.achieved_per_s = use.amount / simulation.step_seconds;
    use.bound_per_s = use.amount / busy;
    uses.push_back(use);
  }
  std::ranges::stable_sort(uses, std::greater{}, &ResourceUse::busy_seconds);
  return uses;
}

std::vector<ExposedWait> exposed_waits(const Simulation& simulation) {
  std::vector<ExposedWait> waits;
  for (std::size_t lane = 0; lane < simulation.compute_waits.size(); ++lane)
    if (simulation.compute_waits[lane] > shortest_wait * simulation.step_seconds)
      waits.push_back({static_cast<Lane>(lane), simulation.compute_waits[lane]});
  std::ranges::stable_sort(waits, std::greater{}, &ExposedWait::seconds);
  return waits;
}

std::vector<DriveWear> drive_wear(const Plan& plan, const MachineProfile& machine) {
  std::vector<DriveWear> drives;
  const std::vector<std::uint64_t> written = nvme_traffic(plan, "train").drive_written_bytes;
  for (std::size_t drive = 0; drive < written.size(); ++drive) {
    DriveWear wear{static_cast<double>(written[drive]) * machine.ranks};
    const double endurance =
        drive < machine.drives.size() ? machine.drives[drive].endurance_bytes : 0;
    if (wear.written_bytes > 0) wear.life_steps = endurance / wear.written_bytes;
    drives.push_back(wear);
  }
  return drives;
}

double saving_rate(const MachineProfile& machine) {
  const int drive = machine.saving_drive();
  return drive < 0 ? 0 : machine.drives[static_cast<std::size_t>(drive)].new_file_rate();
}

// Steps overlap, but not across a drain: from the report before to the report after it pass the end
// of one step, this one alone and the beginning of another, which ends and begins are one alone.
std::optional<SavingStep> saving_step(const Program& program, const Plan& plan,
                                      const MachineProfile& machine, double train_seconds,
                                      std::int64_t every) {
  if (plan.schedule(saving_schedule) == nullptr) return {};
  SavingStep step{.every = every};
  step.seconds = seconds_alone(program, plan, saving_schedule, machine) +
                 seconds_alone(program, plan, "train", machine) - train_seconds;
  const double more = step.seconds - train_seconds;
  if (every > 0) step.share = more / (more + static_cast<double>(every) * train_seconds);
  return step;
}

Saving saving(std::string name, std::uint64_t bytes, double rate) {
  return {std::move(name), bytes, rate > 0 ? static_cast<double>(bytes) / rate : 0};
}

PhaseBytes home_bytes(std::string name, const Plan& plan, std::uint64_t buffers) {
  PhaseBytes phase{std::move(name), {}};
  for (const Usage& usage : plan.usage) {
    if (!usage.is_home || !outlives_steps(usage.role)) continue;
    for (std::size_t tier = 0; tier < phase.bytes.size(); ++tier)
      phase.bytes[tier] += usage.bytes[tier];
  }
  phase.bytes[static_cast<std::size_t>(Tier::host)] += plan.transfer.bytes + buffers;
  return phase;
}

}  // namespace

// A layer's backward takes twice its forward's products, and the pass over the head makes all three
// at once.
double model_flops(const Program& program) {
  const Sequence* train = program.sequence("train");
  double flops = 0;
  for (const SegmentId id : train->segments) {
    const Segment& segment = program.segment(id);
    if (segment.kind == SegmentKind::forward) flops += 3 * program.flops(segment);
    if (segment.kind == SegmentKind::loss) flops += program.flops(segment);
  }
  return flops;
}

std::vector<PhaseBytes> phase_bytes(const Program&, const Plan& plan, const RunFacts& facts) {
  PhaseBytes saving = home_bytes("saving", plan, facts.save_bytes);
  if (plan.save_buffers.bytes > 0) {  // beside training
    saving.bytes = plan.tier_bytes;
    saving.bytes[static_cast<std::size_t>(Tier::host)] += facts.save_bytes;
  }
  return {home_bytes("loading", plan, facts.load_bytes), {"training", plan.tier_bytes}, saving};
}

Prediction predict(const Program& program, const Plan& plan, const MachineProfile& machine,
                   const RunFacts& facts) {
  Prediction p;
  p.ranks = machine.ranks;
  p.machine = machine.name;
  p.simulation = simulate(program, plan, "train", machine);
  p.tokens_per_step = static_cast<double>(facts.tokens_per_step);
  p.model_flops = model_flops(program);
  if (machine.accelerator.peak_flops_per_s > 0)
    p.mfu = p.model_flops / p.simulation.step_seconds / machine.accelerator.peak_flops_per_s;
  p.resources = resource_uses(p.simulation);
  p.waits = exposed_waits(p.simulation);
  p.drives = drive_wear(plan, machine);
  const double rate = saving_rate(machine);
  p.savings = {saving("export", facts.export_bytes, rate),
               saving("checkpoint", facts.checkpoint_bytes, rate)};
  p.saving_step = saving_step(program, plan, machine, p.simulation.step_seconds, facts.save_steps);
  p.phases = phase_bytes(program, plan, facts);
  return p;
}

std::string wait_cause(Lane lane, int ranks) {
  switch (lane) {
    case Lane::read:
      return "reads from NVMe for forward and backward";
    case Lane::h2d:
      return "weights and activations on their way up";
    case Lane::compute:
      return "other work of its own";
    case Lane::comm:
      return ranks > 1 ? "gathers and reductions among ranks" : "copies within the accelerator";
    case Lane::d2h:
      return "gradients and activations on their way down";
    case Lane::write:
      return "writes to NVMe from forward and backward";
    case Lane::update:
      return "the optimizer on the CPU";
    case Lane::state_read:
      return "optimizer state from NVMe";
    case Lane::state_h2d:
      return "optimizer state on its way up";
    case Lane::state_d2h:
      return "optimizer state on its way down";
    case Lane::state_write:
      return "optimizer state to NVMe";
    case Lane::save:
      return "a checkpoint";
  }
  return "?";
}

}  // namespace strata
