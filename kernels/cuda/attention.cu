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

std::uint64_t attention_scratch_bytes(std::int64_t t, std::int64_t q) {
  return attention_scratch_size(t, q);
}

}  // namespace strata::cuda
