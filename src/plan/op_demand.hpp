#pragma once
// What each op of a schedule asks of one rank's share of a machine: the cost model. The simulator
// decides what becomes of it when ops meet.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/plan/machine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/program/program.hpp"

namespace strata {

inline constexpr int no_drive = -1;

struct OpDemand {
  double seconds = 0;                                // alone: what its slowest resource needs
  std::array<double, num_resources> busy{};          // seconds of each resource at its full rate
  std::array<std::uint64_t, num_resources> bytes{};  // through each resource
  double flops = 0;
  int drive = no_drive;
  double drive_seconds = 0;  // of its drive at full rate, in the op's direction
};

// The schedule's ops by OpId. Throws ConfigError when the plan has no such schedule or needs what
// the machine lacks.
std::vector<OpDemand> op_demands(const Program& program, const Plan& plan,
                                 std::string_view schedule, const MachineProfile& machine);

// Name of an update's layout in HostProfile::updates.
std::string update_layout(DType gradient, DType master, DType moments);

// The named schedule; throws ConfigError when the plan has none.
const Schedule& schedule_named(const Plan& plan, std::string_view name);

}  // namespace strata
