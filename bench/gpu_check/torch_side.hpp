#pragma once
// The same model and step in PyTorch, where python3 has it and it sees the GPU.

#include "gpu_check/check.hpp"
#include "gpu_check/model_shape.hpp"

namespace strata {

// What to leave of the budget for it.
double torch_seconds(const Check& check);
void check_torch(Check& check, const ModelShape& shape);

}  // namespace strata
