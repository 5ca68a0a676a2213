#include "kernels/cuda/rmsnorm.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"

namespace strata::cuda {

void rmsnorm_forward(CudaLaunch& launch, const TensorView& x_th, const TensorView& w_h,
                     float epsilon, const TensorView& y_th, const TensorView& rstd_t) {
  launch_rmsnorm_forward(launch, x_th, w_h, epsilon, y_th, rstd_t);
}

void rmsnorm_backward(CudaLaunch& launch, const TensorView& dy_th, const TensorView& x_th,
                      const TensorView& w_h, const TensorView& rstd_t, const TensorView& dx_th,
                      Accumulate accumulate_dx, const TensorView& dw_h,
                      std::span<std::byte> scratch) {
  launch_rmsnorm_backward(launch, dy_th, x_th, w_h, rstd_t, dx_th, accumulate_dx, dw_h, scratch);
}

void bias_backward(CudaLaunch& launch, const TensorView& dy_tn, const TensorView& db_n) {
  launch_bias_backward(launch, dy_tn, db_n);
}

std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) {
  return rmsnorm_scratch_size(t, h);
}

}  // namespace strata::cuda
