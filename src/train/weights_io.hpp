#pragma once
// Moves weights between a Hugging Face folder and the tiles they live in, a piece at a time.

#include <filesystem>

#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// Fills weights and, when the program trains, masters (the same values, of split ones the low bits)
// and moments (zero).
void load_weights(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state);

// Throws what export_weights would throw before it writes.
void check_export_weights(const RunConfig& config, const std::filesystem::path& target,
                          const PlannedRun& run);

// Writes `target` from the config and tokenizer files of the model that the run began with and the
// weights as they are now: in fp32, the master's.
void export_weights(const RunConfig& config, const std::filesystem::path& target,
                    const PlannedRun& run, StateAccess& state);

// What load_weights and export_weights need of host memory beside the plan's.
std::uint64_t load_buffer_bytes();
std::uint64_t export_buffer_bytes(DType dtype);

}  // namespace strata
