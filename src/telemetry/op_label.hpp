#pragma once
// Ops in words, for rows of a trace. Pure.

#include <string>

#include "strata/plan/plan.hpp"
#include "strata/program/program.hpp"

namespace strata {

// "forward layers.3 micro-batch 0", "read master/layers.3 tile 2".
std::string op_label(const Program& program, const Op& op);

}  // namespace strata
