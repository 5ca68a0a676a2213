#pragma once
// What a run reached of what its machine can do: per resource the time in use, the rate while in
// use and the exposed waits; with a prediction of the step, also how much of the bound was reached
// and the prediction beside the measurement. Thread contract: values and pure functions.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/telemetry/model_work.hpp"
#include "strata/telemetry/resource_use.hpp"

namespace strata {

// What one step did, measured or predicted.
struct StepUse {
  double seconds = 0;              // from the result of the step before to this one's
  PerResource<double> busy{};      // of them, those with at least one op of any step under way
  PerResource<double> transfer{};  // transfer_seconds() of its own ops; of measured steps
  PerResource<double> waits{};     // seconds in which the compute lane waited for it
  double loop = 0;  // seconds in which it waited for the training loop; never predicted
  bool operator==(const StepUse&) const = default;
};

// Waits of the compute lane, told by lane; not those for itself.
PerResource<double> waits_by_resource(const std::array<double, num_lanes>& lanes);

StepUse predicted_use(const Schedule& schedule, const Simulation& simulation);

// The steps of a run in bounded memory: when it is full, every second one is forgotten, and from
// then on only as many more are taken.
class UseHistory {
 public:
  explicit UseHistory(std::size_t steps_max = 1024) : steps_max_(steps_max) {}
  void add(const StepUse& use);
  // Each number's median by itself; all 0 without a step.
  StepUse median() const;
  std::int64_t num_steps() const { return seen_; }  // added, also those forgotten

 private:
  std::size_t steps_max_;
  std::int64_t seen_ = 0, stride_ = 1;
  std::vector<StepUse> steps_;  // every stride_-th of those added
};

struct Roofline {
  std::int64_t num_steps = 0;          // that the medians are of
  StepUse measured;                    // medians
  PerResource<std::uint64_t> bytes{};  // that a step moves over each link
  struct Prediction {
    StepUse use;
    PerResource<double> full_rate{};  // seconds that a step needs of each resource alone
    Resource bound_by = Resource::compute;
    double bound_seconds() const { return full_rate[static_cast<std::size_t>(bound_by)]; }
  };
  std::optional<Prediction> predicted;
  ModelWork model = {};
};

Roofline::Prediction prediction_of(const Schedule& schedule, const Simulation& simulation);

// "2.31 s predicted (812 tok/s); bound 2.02 s by NVMe read", for before the run.
std::string format_prediction(const Roofline::Prediction& predicted, std::int64_t tokens);
// A headline and a table by resource; empty when no step was measured.
std::string format_roofline(const Roofline& roofline);

}  // namespace strata
