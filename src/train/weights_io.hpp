#pragma once
// Moves weights between a Hugging Face folder and the tiles they live in, a piece at a time.

#include <filesystem>

#include "strata/runtime/state_access.hpp"
#include "strata/train/planned_run.hpp"

namespace strata {

// Fills weights and, when the program trains, masters (the same values) and moments (zero).
void load_weights(const std::filesystem::path& folder, const PlannedRun& run, StateAccess& state);

// Throws what export_weights would throw before it writes.
void check_export_weights(const std::filesystem::path& base, const std::filesystem::path& target,
                          const PlannedRun& run);

// Writes `target` from `base`'s config and tokenizer files and the weights as they are now.
void export_weights(const std::filesystem::path& base, const std::filesystem::path& target,
                    const PlannedRun& run, StateAccess& state);

}  // namespace strata
