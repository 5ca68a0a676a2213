#pragma once
// The CUDA implementation of Kernels. Its streams are those of the CUDA device; work is queued on
// them and complete when they say so. Needs no CUDA to be included.

#include <cstddef>
#include <memory>
#include <span>

#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

struct CudaKernelsOptions {
  int ordinal = 0;                 // of the device
  std::span<std::byte> workspace;  // device memory for matrix products, on 256 bytes; 32 MiB do
};

// Throws Error where there is no such device.
std::unique_ptr<Kernels> make_cuda_kernels(const CudaKernelsOptions& options);

}  // namespace strata::cuda
