#pragma once
// Rotate-half RoPE in place with the semantics of Kernels::rope.
// Thread contract: may be called from several threads at once.

#include <span>

#include "strata/kernels/kernels.hpp"

namespace strata::cpu {

class Parallel;

void rope(Parallel& parallel, TensorView x_thd, TensorView document_start_t,
          std::span<const float> inverse_frequencies, Rotation rotation);

}  // namespace strata::cpu
