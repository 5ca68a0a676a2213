#include "kernels/cuda/rank_sum.cuh"

#include "kernels/cuda/cuda_launch.cuh"

namespace strata::cuda {

SumOfTerms make_rank_sum(int ordinal) {
  return [limits = limits_of(ordinal)](std::span<const TensorView> terms, TensorView total,
                                       Stream& stream) {
    CudaLaunch launch(static_cast<cudaStream_t>(stream.native()), limits);
    launch_rank_sum(launch, terms, total);
  };
}

}  // namespace strata::cuda
