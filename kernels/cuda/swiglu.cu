#include "kernels/cuda/swiglu.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"

namespace strata::cuda {

void swiglu_forward(CudaLaunch& launch, const TensorView& gate_tf, const TensorView& up_tf,
                    const TensorView& y_tf) {
  launch_swiglu_forward(launch, gate_tf, up_tf, y_tf);
}

void swiglu_backward(CudaLaunch& launch, const TensorView& dy_tf, const TensorView& gate_tf,
                     const TensorView& up_tf, const TensorView& dgate_tf,
                     const TensorView& dup_tf) {
  launch_swiglu_backward(launch, dy_tf, gate_tf, up_tf, dgate_tf, dup_tf);
}

}  // namespace strata::cuda
