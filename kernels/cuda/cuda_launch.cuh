#pragma once
// Launches kernels on a stream. Whoever asks for shared memory beyond 48 KiB gets it, if the device
// has it. Thread contract: a value; one thread at a time a stream.

#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "kernels/cuda/launch_shape.hpp"
#include "strata/core/error.hpp"
#include "strata/device/cuda_advice.hpp"

namespace strata::cuda {

// Throws with the error's name, number and text, and what to do about it; and has the runtime forget
// it, else the next launch of this thread would be blamed.
[[noreturn]] inline void throw_cuda_error(const std::string& what, cudaError_t status) {
  cudaGetLastError();
  throw Error(what + ": " + cudaGetErrorName(status) + " (" +
              std::to_string(static_cast<int>(status)) + "): " + cudaGetErrorString(status) +
              std::string(cuda_advice(static_cast<int>(status))));
}

inline int device_attribute(cudaDeviceAttr attribute, int ordinal) {
  int value = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&value, attribute, ordinal);
  if (status != cudaSuccess)
    throw_cuda_error("cudaDeviceGetAttribute of device " + std::to_string(ordinal), status);
  return value;
}

inline DeviceLimits limits_of(int ordinal) {
  return {device_attribute(cudaDevAttrMultiProcessorCount, ordinal),
          device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor, ordinal),
          device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal)};
}

class CudaLaunch {
 public:
  CudaLaunch(cudaStream_t stream, const DeviceLimits& limits) : stream_(stream), limits_(limits) {}

  const DeviceLimits& limits() const { return limits_; }
  cudaStream_t stream() const { return stream_; }

  template <class... Parameters, class... Arguments>
  void launch(std::string_view name, void (*kernel)(Parameters...), const LaunchShape& shape,
              const Arguments&... arguments) const {
    if (shape.shared_bytes > shared_bytes_by_default) {
      check_launch(name, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shape.shared_bytes)));
    }
    const dim3 grid(static_cast<unsigned>(shape.grid_x), static_cast<unsigned>(shape.grid_y));
    kernel<<<grid, static_cast<unsigned>(shape.threads),
             static_cast<std::size_t>(shape.shared_bytes), stream_>>>(arguments...);
    check_launch(name, cudaGetLastError());
  }

 private:
  static constexpr std::int64_t shared_bytes_by_default = 48 * 1024;

  static void check_launch(std::string_view name, cudaError_t status) {
    if (status != cudaSuccess) throw_cuda_error("launch of " + std::string(name), status);
  }

  cudaStream_t stream_;
  DeviceLimits limits_;
};

}  // namespace strata::cuda
