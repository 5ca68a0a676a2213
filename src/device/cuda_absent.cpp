#include "strata/core/error.hpp"
#include "strata/device/cuda_devices.hpp"
#include "strata/device/device.hpp"

namespace strata {

int num_cuda_devices() { return 0; }

std::unique_ptr<Device> make_cuda_device(int, const CudaDeviceOptions&) {
  throw ConfigError("this build has no CUDA back end: use the host device");
}

CudaInventory read_cuda_devices() {
  CudaInventory inventory;
  inventory.is_built = false;
  inventory.failure = "this build of Strata has no CUDA back end";
  return inventory;
}

}  // namespace strata
