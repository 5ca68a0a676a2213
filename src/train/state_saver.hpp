#pragma once
// Writes a rank's own part of the state, as it stands at its homes, to a checkpoint. The executor
// must be drained. Thread contract: one thread, which may be another than the executor's.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// `memory`: the plan's save buffers; empty: as much is allocated. Returns when the writer has taken
// everything, or a write has failed (finish() tells), or `given_up` was set.
void save_state(const PlannedRun& run, StateAccess& state, CheckpointWriter& writer,
                std::span<std::byte> memory, const std::atomic<bool>& given_up);

// What save_state needs of host memory beside the plan's, where that has no save buffers.
std::uint64_t save_buffer_bytes(const Program& program);

}  // namespace strata
