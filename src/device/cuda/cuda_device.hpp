#pragma once
// A CUDA device over whatever CudaApi: the runtime, or a fake of it that outlives the device and
// all it made.

#include <memory>
#include <string>

#include "cuda_api.hpp"
#include "strata/device/device.hpp"

namespace strata {

// Throws ConfigError when there is no such device, CudaError when it cannot be used.
std::unique_ptr<Device> make_cuda_device(CudaApi& api, int ordinal,
                                         const CudaDeviceOptions& options);

int num_cuda_devices(CudaApi& api);
CudaInventory read_cuda_devices(CudaApi& api);

}  // namespace strata
