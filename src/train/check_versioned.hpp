#pragma once
// Whether every part of a run's state is where its commits reach it. Thread contract: pure.

#include "strata/program/program.hpp"
#include "strata/train/run_config.hpp"

namespace strata {

// Throws ConfigError that says what is elsewhere and what to set.
void check_versioned(const RunConfig& config, const Program& program);

}  // namespace strata
