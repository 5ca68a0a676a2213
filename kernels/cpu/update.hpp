#pragma once
// The optimizer pass with the semantics of Kernels::update. One frame serves every rule and layout;
// update_rules-inl.h holds the formulas, update_frame-inl.h the frame, and one source file a rule
// compiles them for every SIMD target. Thread contract: may be called from several threads at once.

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

// Elements [begin, end) of the tile. `begin` is a multiple of the q8 block.
void adamw_chunk(const UpdatePass& pass, std::int64_t begin, std::int64_t end);
void adam_chunk(const UpdatePass& pass, std::int64_t begin, std::int64_t end);
void sgd_chunk(const UpdatePass& pass, std::int64_t begin, std::int64_t end);
void lion_chunk(const UpdatePass& pass, std::int64_t begin, std::int64_t end);

}  // namespace strata::cpu
