#pragma once
// What a plan is predicted to do on a machine, as the numbers that people ask for: how fast, what
// bounds it, where the time goes, what crosses each link, what it costs the drives, and what memory
// it holds while loading, training and saving. A Prediction is a value; pure functions, any thread.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/plan/machine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/program/program.hpp"

namespace strata {

// What neither the program nor the plan knows of a run.
struct RunFacts {
  std::int64_t tokens_per_step = 0;              // of all ranks
  std::uint64_t export_bytes = 0;                // a Hugging Face folder of the weights
  std::uint64_t checkpoint_bytes = 0;            // what a run goes on from
  std::int64_t save_steps = 0;                   // a checkpoint after so many; 0: not by steps
  std::uint64_t load_bytes = 0, save_bytes = 0;  // buffers beside the plan's own memory
};

// One resource over one step of one rank. What ranks share, a rank has its share of.
struct ResourceUse {
  Resource resource = Resource::compute;
  double busy_seconds = 0;    // at its full rate
  double amount = 0;          // bytes; of compute, FLOPs
  double achieved_per_s = 0;  // amount over the whole step
  double bound_per_s = 0;     // amount over the busy seconds
};

// Time in which the accelerator waited, and for what.
struct ExposedWait {
  Lane lane = Lane::compute;
  double seconds = 0;
};

// A drive, written by all ranks.
struct DriveWear {
  double written_bytes = 0;  // per step
  double life_steps = 0;     // 0: the machine does not say what the drive endures
};

// Memory that one phase of a run touches in each tier. All of it is reserved at the start.
struct PhaseBytes {
  std::string name;  // "loading", "training", "saving"
  std::array<std::uint64_t, num_tiers> bytes{};
};

struct Saving {
  std::string name;  // "export", "checkpoint"
  std::uint64_t bytes = 0;
  double seconds = 0;  // to write, on the machine's saving_drive(); 0: it has none
};

// The step that hands its state to a checkpoint.
struct SavingStep {
  double seconds = 0;      // with what the drains before and after it cost the steps beside it
  std::int64_t every = 0;  // steps; 0: not by steps
  double share = 0;        // of all the time that training takes, by what is more than other steps
};

struct Prediction {
  int ranks = 1;
  std::string machine;
  Simulation simulation;
  double tokens_per_step = 0;  // of all ranks
  double model_flops = 0;      // per step and rank, recomputation not counted
  double mfu = 0;
  std::vector<ResourceUse> resources;  // those in use, the busiest first
  std::vector<ExposedWait> waits;      // those that are, the longest first
  std::vector<DriveWear> drives;
  std::vector<Saving> savings;
  std::optional<SavingStep> saving_step;  // none: training stands still while one is written
  std::vector<PhaseBytes> phases;

  double tokens_per_s() const { return tokens_per_step / simulation.step_seconds; }
};

// Of one step of this rank, forward and backward; what is computed a second time does not count.
double model_flops(const Program& program);

// Of the schedule "train". Throws what simulate() throws.
Prediction predict(const Program& program, const Plan& plan, const MachineProfile& machine,
                   const RunFacts& facts);
// What loading, training and saving hold of each tier: needs no machine.
std::vector<PhaseBytes> phase_bytes(const Program& program, const Plan& plan,
                                    const RunFacts& facts);

// What an accelerator of so many waits for when that lane is late: "weights on their way up".
std::string wait_cause(Lane lane, int ranks);

// The report's parts, each some lines of text that end in a line feed.
std::string format_headline(const Prediction& prediction);   // "step 7.92 s, 8 270 tokens/s ..."
std::string format_waterfall(const Prediction& prediction);  // where the step's seconds go
std::string format_resources(const Prediction& prediction);
std::string format_drives(const Prediction& prediction);
std::string format_savings(const Prediction& prediction);
std::string format_phases(const std::vector<PhaseBytes>& phases, const TierLimits& limits);

// The plan with "prediction" in it (docs/design/planning.md).
std::string plan_to_json(const Program& program, const Plan& plan, const Prediction& prediction);

// "7.92 s", "413 ms", "2.6 days".
std::string format_seconds(double seconds);
// "8,270".
std::string format_grouped(double value);

}  // namespace strata
