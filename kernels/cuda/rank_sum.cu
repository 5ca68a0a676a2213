#include "kernels/cuda/rank_sum.cuh"

#include "kernels/cuda/cuda_launch.cuh"

namespace strata::cuda {
namespace {

int attribute_of(int ordinal, cudaDeviceAttr attribute) {
  int value = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&value, attribute, ordinal);
  if (status != cudaSuccess)
    throw_cuda_error("cudaDeviceGetAttribute of device " + std::to_string(ordinal), status);
  return value;
}

}  // namespace

SumOfTerms make_rank_sum(int ordinal) {
  DeviceLimits limits;
  limits.multiprocessors = attribute_of(ordinal, cudaDevAttrMultiProcessorCount);
  limits.threads_per_multiprocessor = attribute_of(ordinal, cudaDevAttrMaxThreadsPerMultiProcessor);
  return [limits](std::span<const TensorView> terms, TensorView total, Stream& stream) {
    CudaLaunch launch(static_cast<cudaStream_t>(stream.native()), limits);
    launch_rank_sum(launch, terms, total);
  };
}

}  // namespace strata::cuda
