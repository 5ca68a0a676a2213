#pragma once
// The optimizer pass with the semantics of Kernels::update. One frame serves every rule and layout;
// update_rules-inl.h holds the formulas, update_frame-inl.h the frame, and update.cpp compiles them
// for every SIMD target. Thread contract: may be called from several threads at once.

#include "kernels/common/update_factors.hpp"
#include "kernels/common/update_random.hpp"
#include "strata/kernels/update.hpp"

namespace strata::cpu {

class Parallel;

void update(Parallel& parallel, const UpdateArgs& args);

// What the chunks of one pass share.
struct UpdatePass {
  const UpdateArgs& args;
  UpdateFactors decayed, plain;
  UpdateRandom random;
};

}  // namespace strata::cpu
