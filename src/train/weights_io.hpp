#pragma once
// Moves weights between a Hugging Face folder and the tiles they live in, a tile at a time. No rank
// ever holds the model.

#include <filesystem>

#include "strata/comm/communicator.hpp"
#include "strata/core/byte_watch.hpp"
#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// Fills what this rank holds of weights and, when the program trains, masters (the same values, of
// split ones the low bits) and moments (zero). Padding is zero too.
void load_weights(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state);

// Throws what export_weights would throw before it writes. For the first rank.
void check_export_weights(const RunConfig& config, const std::filesystem::path& target,
                          const PlannedRun& run);

// Writes `target` from the config and tokenizer files of the model that the run began with and the
// weights as they are now: in fp32, the master's. Every rank calls it: the first writes, the others
// give it their tiles and return when the folder is there. `control` joins them; null when there is
// one. When the first rank throws, the others return; another that throws leaves the rest waiting
// until `control` is aborted. `watch` is the first rank's.
void export_weights(const RunConfig& config, const std::filesystem::path& target,
                    const PlannedRun& run, StateAccess& state, Communicator* control,
                    const ByteWatch& watch = {});

// What export_weights writes them in, and how many bytes of them.
DType exported_dtype(const RunConfig& config, const PlannedRun& run);
std::uint64_t exported_bytes(const RunConfig& config, const PlannedRun& run);

// What load_weights and, on the first rank, export_weights need of host memory beside the plan's.
std::uint64_t load_buffer_bytes(const Program& program);
std::uint64_t export_buffer_bytes(const Program& program, DType dtype);

// What this rank holds of a role of model state, at home on whatever tier.
std::uint64_t held_bytes(const PlannedRun& run, Role role);
// The same of weights, masters and moments together: what a load fills.
std::uint64_t held_state_bytes(const PlannedRun& run);

}  // namespace strata
