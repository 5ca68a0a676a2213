#include "strata/core/error.hpp"
#include "strata/device/device.hpp"

namespace strata {

int num_cuda_devices() { return 0; }

std::unique_ptr<Device> make_cuda_device(int) {
  throw ConfigError("this build has no CUDA back end: use the host device");
}

}  // namespace strata
