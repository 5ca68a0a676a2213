#include "kernels/cuda/rope.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"

namespace strata::cuda {

void rope(CudaLaunch& launch, const TensorView& x_thd, const TensorView& document_start_t,
          std::span<const float> inverse_frequencies, Rotation rotation) {
  launch_rope(launch, x_thd, document_start_t, inverse_frequencies, rotation);
}

}  // namespace strata::cuda
