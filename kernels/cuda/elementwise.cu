#include "kernels/cuda/elementwise.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"
#include "kernels/cuda/sums.cuh"

namespace strata::cuda {

void cast(CudaLaunch& launch, const TensorView& source, const TensorView& target) {
  launch_cast(launch, source, target);
}

void cast_weight(CudaLaunch& launch, const TensorView& master, const TensorView& weight) {
  launch_cast_weight(launch, master, weight);
}

void accumulate(CudaLaunch& launch, const TensorView& source, const TensorView& target,
                Accumulate accumulate) {
  launch_accumulate(launch, source, target, accumulate);
}

void add(CudaLaunch& launch, const TensorView& a, const TensorView& b, const TensorView& out) {
  launch_add(launch, a, b, out);
}

void square_sums(CudaLaunch& launch, const TensorView& values, const TensorView& partials) {
  launch_square_sums(launch, values, partials);
}

void sum(CudaLaunch& launch, const TensorView& values_t, const TensorView& total) {
  launch_sum(launch, values_t, total);
}

}  // namespace strata::cuda
