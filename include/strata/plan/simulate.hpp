#pragma once
// Predicts a step: the ops of a Plan's schedule run on their lanes under a MachineProfile's rates.
//
// Model. A lane is a server that takes its ops in order, as the executor does: one at a time, or,
// on NVMe lanes, one at a time per drive. An op starts when its lane is free and its edges are met.
// Alone it takes the time that its slowest resource needs; ops that share a resource (host memory
// is crossed by both DMA directions, the optimizer and NVMe; a drive by reads and writes; a link by
// both directions) slow each other down in proportion. All ranks of the machine do the same at the
// same time: one is simulated with its share of what they share.
//
// Steps follow one another without a barrier, as in a run. Several are simulated; what is reported
// is the last, when the pipeline is in its steady state. Pure functions; any thread.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/plan/machine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/program/program.hpp"

namespace strata {

// When an op ran, in seconds since its step's first op could start (negative ones and such beyond
// the step's end are normal: steps overlap).
struct OpTime {
  OpId op;
  double start = 0, end = 0;
};

// What steps compete for.
enum class Resource : std::uint8_t {
  compute,      // the accelerator
  comm,         // between accelerators, and copies within one
  up,           // host to device
  down,         // device to host
  update,       // the host's cores at the optimizer and at gradient sums
  host_memory,  // bytes through DRAM, shared by the ranks
  nvme_read,    // all drives
  nvme_write,
};
inline constexpr int num_resources = 8;
std::string_view resource_key(Resource resource);   // for tools: "h2d", "host_memory", "nvme_read"
std::string_view resource_name(Resource resource);  // for people: "h2d", "host memory", "NVMe read"

struct Simulation {
  // A step ends with its report, as in a run; without one, when all its ops are complete.
  double step_seconds = 0;        // from one step's end to the next, steady state
  double first_step_seconds = 0;  // of a cold start, to its report: there are no updates of a step before to wait for

  // Seconds a step keeps each resource busy at its full rate. The largest bounds the step.
  std::array<double, num_resources> busy{};
  Resource bound_by = Resource::compute;
  double bound_seconds() const { return busy[static_cast<std::size_t>(bound_by)]; }
  // What no order of these ops could beat. More than the bound where one lane or drive has more to
  // do than its like, or where the two directions of a drive or link hinder each other.
  double least_seconds = 0;

  // Seconds in which the accelerator's compute lane had nothing to do, by what it waited for: the
  // lane whose op came last, followed back to the one that was really late. Between its last op of
  // a step and the report that lets the next begin: the lanes on the way there. With the lane's
  // lane_busy they add up to step_seconds.
  std::array<double, num_lanes> compute_waits{};
  std::array<double, num_lanes> lane_busy{};  // seconds with an op running

  std::array<std::uint64_t, num_resources>
      bytes{};              // per step and rank; host memory: all crossings
  double flops = 0;         // per step and rank, recomputation included
  std::vector<OpTime> ops;  // one steady step, indexed by OpId
};

// How long each op takes alone and what it asks of each resource while it runs.
struct OpCost {
  double seconds = 0;                         // alone
  std::array<double, num_resources> share{};  // of the resource's full rate, while alone: 0..1
};

// Throws ConfigError when the plan has no such schedule or needs what the machine lacks.
std::vector<OpCost> op_costs(const Program& program, const Plan& plan, std::string_view schedule,
                             const MachineProfile& machine);
Simulation simulate(const Program& program, const Plan& plan, std::string_view schedule,
                    const MachineProfile& machine);
// Seconds of one step that nothing runs before or after, until all its ops are complete: what lies
// between two drains.
double seconds_alone(const Program& program, const Plan& plan, std::string_view schedule,
                     const MachineProfile& machine);

// The limits that a machine sets to one of its ranks; `headroom` is the share of each tier left to
// others.
TierLimits machine_limits(const MachineProfile& machine, double headroom = 0.05);

}  // namespace strata
