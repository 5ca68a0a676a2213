#pragma once
// Fills the state that a rank holds from a checkpoint, whatever the tiers, tiles, ranks, stage and
// format of the master of the run that wrote it. Thread contract: one thread.

#include <cstdint>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// Throws ConfigError, naming both, when the checkpoint is of another model, or its moments are
// others than the run's.
void check_state(const PlannedRun& run, const CheckpointInfo& checkpoint);

// Pieces that are under way at the same time.
inline constexpr std::size_t state_reads_ahead = 3;

// Host memory that load_state() takes at most, beside the plan's own.
std::uint64_t resume_buffer_bytes(const Program& program);
// Masters and moments as they were, weights as the masters round to.
void load_state(const PlannedRun& run, StateAccess& state, const CheckpointReader& checkpoint);

}  // namespace strata
