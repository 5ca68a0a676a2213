#include "kernels/cuda/cuda_kernels.hpp"
#include "strata/core/error.hpp"

namespace strata::cuda {

std::unique_ptr<Kernels> make_cuda_kernels(const CudaKernelsOptions&) {
  throw ConfigError("this build has no CUDA kernels: use the host device");
}

}  // namespace strata::cuda
