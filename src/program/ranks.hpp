#pragma once
// Whether a Program's ranks, and how they share its model state, make sense.

#include "strata/program/program.hpp"

namespace strata {

void check_ranks(const Program& program);  // Throws ConfigError.

}  // namespace strata
