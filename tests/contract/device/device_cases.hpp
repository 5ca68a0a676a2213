#pragma once
// The devices that the device contract holds. Which depends on the executable: the host and the
// CUDA device over the fake runtime in device_test, the machine's GPUs in cuda_test.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/device/device.hpp"

namespace strata::testing {

struct DeviceRig {
  std::shared_ptr<void> below;  // what the device stands on
  std::unique_ptr<Device> device;
  std::function<void()> check_at_end = {};  // when the device is gone
};

struct DeviceCase {
  std::string name;
  std::function<DeviceRig()> make;
};

std::vector<DeviceCase> devices_under_test();

}  // namespace strata::testing
