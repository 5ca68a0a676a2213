#include "kernels/cuda/attention.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"

namespace strata::cuda {

void attention_forward(CudaLaunch& launch, const AttentionArgs& args) {
  launch_attention_forward(launch, args);
}

void attention_backward(CudaLaunch& launch, const AttentionArgs& args) {
  launch_attention_backward(launch, args);
}

}  // namespace strata::cuda
