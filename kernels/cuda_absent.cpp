#include "kernels/cuda/cuda_kernels.hpp"
#include "strata/core/error.hpp"

namespace strata::cuda {

std::unique_ptr<Kernels> make_cuda_kernels(const CudaKernelsOptions&) {
  throw ConfigError("this build has no CUDA back end: use the kernels of the host");
}

}  // namespace strata::cuda
