#pragma once
// Host memory that a rank takes beside the tiers of its plan while it loads and while it saves.
// Thread contract: pure functions.

#include <algorithm>
#include <cstdint>

#include "strata/train/planned_run.hpp"

namespace strata {

struct RunBuffers {
  std::uint64_t load_bytes = 0, save_bytes = 0;
  std::uint64_t most() const { return std::max(load_bytes, save_bytes); }
};
// `run` need not be planned yet. The first rank's: others save with less.
RunBuffers run_buffers(const RunConfig& config, Purpose purpose, const PlannedRun& run,
                       const Policy& policy);

// The limits that a rank of this run is planned with.
TierLimits with_buffers(TierLimits limits, const RunConfig& config, Purpose purpose,
                        const PlannedRun& run, const Policy& policy);

}  // namespace strata
