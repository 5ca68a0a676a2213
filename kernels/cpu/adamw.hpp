#pragma once
// The AdamW pass with the semantics of Kernels::adamw: one sweep over gradient, master and moments.
// Thread contract: may be called from several threads at once.

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void adamw(Parallel& parallel, const AdamWArgs& args);

}  // namespace strata::cpu
