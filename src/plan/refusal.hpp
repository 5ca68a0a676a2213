#pragma once
// What a search says when nothing fits.

#include "trial_bench.hpp"

namespace strata {

// Throws OutOfMemory for the nearest that would fit, and what it lacks.
[[noreturn]] void refuse_search(const ProgramVariant& variant, const Policy& policy,
                                const Fit& fit);

}  // namespace strata
