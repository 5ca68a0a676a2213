#pragma once
// A StateSaver writes a rank's own part of the state to a checkpoint, a tile at a time through a
// few buffers: one is filled while others are on their way to the disk. The executor must be
// drained. Thread contract: one thread.

#include <cstdint>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// Elements in own tiles of what every rank holds whole are written by the rank whose slice they
// are. Returns when the writer has taken everything; finish() tells whether it arrived. `vectors`
// are those the writer was opened with.
void save_state(const PlannedRun& run, StateAccess& state, CheckpointWriter& writer,
                const std::vector<StateVector>& vectors);

// What save_state needs of host memory beside the plan's.
std::uint64_t save_buffer_bytes(const Program& program);

}  // namespace strata
