#pragma once
// The parts of a check, in the order in which they are run. Each runs programs and adds rows.

#include "gpu_check/check.hpp"

namespace strata {

// What strata doctor and nvidia-smi see. Finds out whether there is a GPU.
void check_machine(Check& check);
// Test programs that need no GPU, then those that do.
void check_tests(Check& check);
// Links, products, attention and Adam on the GPU; then the rates that a plan asks for.
void check_rates(Check& check);
// Models under every placement.
void check_training(Check& check);

}  // namespace strata
