#pragma once
// Kernels of a device behind tensors in ordinary memory: what the contract suites hold, they hold
// of work on a device's memory. Each call is a StagedCall, complete when it returns; streams given
// to it are not looked at.

#include <memory>

#include "strata/kernels/kernels.hpp"
#include "support/staged_call.hpp"

namespace strata::testing {

std::unique_ptr<Kernels> make_staged_kernels(StagingArena& arena, std::shared_ptr<Kernels> kernels);

}  // namespace strata::testing
