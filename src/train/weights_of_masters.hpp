#pragma once
// Working weights are masters, rounded: so a run whose masters are where they should be needs
// nothing else to have its weights. Thread contract: one thread.

#include "strata/comm/communicator.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// Writes the weights that this rank holds. Where the ranks slice masters but not weights, each
// gives the others its part over `control` (null when there is one rank), and every rank must call
// it.
void derive_weights(const PlannedRun& run, StateAccess& state, Communicator* control);

}  // namespace strata
