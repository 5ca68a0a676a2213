#include "kernels/cuda/cross_entropy.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"

namespace strata::cuda {

void cross_entropy(CudaLaunch& launch, const CrossEntropyArgs& args) {
  launch_cross_entropy(launch, args);
}

}  // namespace strata::cuda
