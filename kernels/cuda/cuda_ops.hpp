#pragma once
// The ops of Kernels on a CUDA stream, one source file a group; they return when the work is
// queued. Needs no CUDA to be included.

#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

class CudaLaunch;

void update(CudaLaunch& launch, const UpdateArgs& args);

}  // namespace strata::cuda
