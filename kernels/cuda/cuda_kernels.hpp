#pragma once
// The CUDA implementation of Kernels. Its streams are those of the CUDA device; work is queued on
// them and complete when they say so. Needs no CUDA to be included.

#include <cstddef>
#include <memory>
#include <span>

#include "strata/core/bytes.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

// Of device memory, for matrix products: what a run sets aside.
inline constexpr std::uint64_t kernels_workspace_bytes = 32 * MiB;

struct CudaKernelsOptions {
  int ordinal = 0;                 // of the device
  std::span<std::byte> workspace;  // device memory for matrix products, on 256 bytes
};

// Throws Error where there is no such device, ConfigError in a build without them.
std::unique_ptr<Kernels> make_cuda_kernels(const CudaKernelsOptions& options);

// In every build: kernels that may be asked for nothing but the scratch that those need.
std::unique_ptr<Kernels> make_cuda_sizes();

}  // namespace strata::cuda
