#include "kernels/cuda/embedding.cuh"

#include "kernels/cuda/cuda_launch.cuh"
#include "kernels/cuda/cuda_ops.hpp"

namespace strata::cuda {

void embedding_forward(CudaLaunch& launch, const TensorView& tokens_t, const TensorView& table_vh,
                       const TensorView& out_th) {
  launch_embedding_forward(launch, tokens_t, table_vh, out_th);
}

void embedding_backward(CudaLaunch& launch, const TensorView& tokens_t, const TensorView& dout_th,
                        const TensorView& dtable_vh, std::span<std::byte> scratch) {
  launch_embedding_backward(launch, tokens_t, dout_th, dtable_vh, scratch);
}

std::uint64_t embedding_scratch_bytes(std::int64_t v) { return embedding_scratch_size(v); }

}  // namespace strata::cuda
