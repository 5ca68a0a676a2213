#include "kernels/cuda/update.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"

namespace strata::cuda {

void update(CudaLaunch& launch, const UpdateArgs& args) { launch_update(launch, args); }

}  // namespace strata::cuda
