#include <cstdlib>

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
  inventory.is_hidden = hides_all_devices(std::getenv("CUDA_VISIBLE_DEVICES"));
  inventory.failure =
      "this build of Strata has no CUDA back end: one has where a CUDA toolkit of 12.8 or newer is "
      "installed when it is built";
  return inventory;
}

}  // namespace strata
