#pragma once
// What a run would do on a machine that need not be here, from the shape of its model alone: it is
// planned and simulated, and so are its neighbours. Pure but for reading the model's config.json.
// Thread contract: one thread.

#include <optional>
#include <string>
#include <vector>

#include "strata/plan/fit.hpp"
#include "strata/plan/machine.hpp"
#include "strata/plan/prediction.hpp"
#include "strata/plan/tier_overflow.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// One way to run.
struct Scenario {
  RunConfig config;
  PlanChoice choice;
};
// As the config says, with a rank on each of the machine's accelerators. Throws ConfigError when
// the config wants drives of a machine that has none.
Scenario scenario_of(const RunConfig& config, const MachineProfile& machine);

// What makes `to` of `from`, as settings to paste behind a command line:
// "offload.state_slots=8 'offload.gradients={gpu: 1, cpu: 0, nvme: 0}'".
std::string changed_keys(const Scenario& from, const Scenario& to);

// The refusal with advice to raise the limit only where the config sets it.
TierOverflow advised(const TierOverflow& refusal, const RunConfig& config);
// The same of a plan for this machine: it tells what of its memory is not given out.
TierOverflow advised_here(const TierOverflow& refusal, const RunConfig& config,
                          std::uint64_t available, int num_host_ranks);

struct Forecast {
  PlannedRun run;
  Prediction prediction;
};
// Throws what plan_run() and simulate() throw.
Forecast forecast(const Scenario& scenario, const MachineProfile& machine,
                  Proof proof = Proof::verified);
RunFacts run_facts(const RunConfig& config, const PlannedRun& run, int ranks);

// The fastest that search() finds of the same batch, whatever else the scenario says. Throws
// OutOfMemory when nothing fits.
Scenario fastest_scenario(const Scenario& start, const MachineProfile& machine);

// A scenario one change away from another.
struct Neighbour {
  std::string name;  // "optimizer: gpu 25%, cpu 75%"
  std::string note;  // what else changes: "approximate", "twice the batch"; empty: nothing
  Scenario scenario;
};

// A neighbour, tried.
struct Trial {
  std::string refusal;  // "does not fit: cpu: 212 GiB more"; empty: it can run
  double step_seconds = 0, tokens_per_s = 0, mfu = 0;
  Resource bound_by = Resource::compute;
  bool fits() const { return refusal.empty(); }
};
Trial try_out(const Scenario& scenario, const MachineProfile& machine);

// The neighbours that `strata plan --what-if` tabulates: where the optimizer's state lives, larger
// micro-batches, more of them.
std::vector<Neighbour> what_if_neighbours(const Scenario& scenario, const MachineProfile& machine);

struct Improvement {
  Neighbour neighbour;
  double gain = 0;  // of tokens/s: 0.12 is 12% more
};
// The changes that would help most: those that fit and make more tokens a second, the best of each
// kind, at most `num_max`.
std::vector<Improvement> improvements(const Scenario& scenario, const Forecast& now,
                                      const MachineProfile& machine, std::size_t num_max = 3);

// For a scenario that does not fit one rank's limits: the first that does of a short ladder of
// smaller ones, with no more changed than it takes.
struct NearestFit {
  std::optional<Scenario> scenario;  // empty when none does
  Fit fit;  // how it stands with the limits, or, when none does, the smallest of them
};
NearestFit nearest_fit(const Scenario& scenario, const TierLimits& limits);

}  // namespace strata
