#pragma once
// What `strata train` says of the checkpoints to come. Thread contract: pure.

#include <string>

#include "strata/train/planned_run.hpp"

namespace strata {

// When, how large, and how many are kept.
std::string describe_saves(const RunConfig& config, const PlannedRun& run);

}  // namespace strata
