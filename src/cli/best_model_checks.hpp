#pragma once
// What must hold for a best checkpoint to be kept and used: transformers asks for the same.
// Thread contract: pure.

#include "strata/train/run_config.hpp"

namespace strata {

// Throws ConfigError naming the keys that do not fit one another.
void check_best_model(const RunConfig& config);

}  // namespace strata
