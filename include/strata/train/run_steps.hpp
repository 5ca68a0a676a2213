#pragma once
// How often things are done in a run, and its learning rates, once its length is known. Thread
// contract: pure.

#include <cstdint>

#include "strata/optim/schedule.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

// A number of steps or, below 1, a share of all of them, rounded up, as transformers has it.
std::int64_t num_steps(double steps_or_share, std::int64_t total_steps);

// Whether a step that took the run from one place in its passes over the data to the other ended a
// pass.
bool ends_epoch(double epochs_before, double epochs);

LearningRateSchedule learning_rates(const RunConfig& config, std::int64_t total_steps);

}  // namespace strata
