#pragma once
// What a training run of the check did, from its metrics.jsonl and from what `strata plan --json`
// predicted; and whether runs that differ in placement alone took the same steps.

#include <optional>
#include <string>
#include <vector>

#include "gpu_check/check_row.hpp"

namespace strata {

struct Prediction {
  double step_seconds = 0, bound_seconds = 0, tokens_per_step = 0, mfu = 0;
  std::string bound_by;
};

struct TrainedSteps {
  std::string placement;  // "(b) state in RAM"
  std::vector<double> losses, grad_norms, step_seconds, tokens_per_s;

  // The median of the steps after the first two, as `strata train` tells it; of fewer steps the
  // last.
  double median_step_seconds() const;
};

// Empty: the plan's text has no prediction, since no machine was named.
std::optional<Prediction> prediction_in(const std::string& plan);
// Throws std::runtime_error when a line is damaged, a step is missing or a loss is not finite.
TrainedSteps steps_in(const std::string& metrics, const std::string& placement);

// Step time, rate, MFU, achieved of the bound, the prediction beside it.
CheckRow training_row(const std::string& part, const TrainedSteps& steps,
                      const std::optional<Prediction>& predicted);

// Bit by bit, over the steps that all have: losses and gradient norms. Needs two runs of two steps.
CheckRow equality_row(const std::string& part, const std::vector<TrainedSteps>& runs);

}  // namespace strata
