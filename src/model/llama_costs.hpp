#pragma once
// What each kind of a Llama's segments costs. The work is not computed by formulas that could
// disagree with the code: the code itself is run over meta kernels and the meta device.

#include "model/llama_program.hpp"

namespace strata {

// `sizes` tells how much scratch its kernels need; it is asked for nothing else. A few ms and no
// memory, whatever the model's size.
LlamaCosts record_costs(const LlamaConfig& config, const ComputeShape& shape, const Kernels& sizes);

}  // namespace strata
