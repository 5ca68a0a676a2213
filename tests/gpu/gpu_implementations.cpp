// Contract suites, when built into cuda_test, run on the machine's GPUs.

#include <algorithm>

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/device/device_cases.hpp"
#include "contract/kernels/kernels_harness.hpp"
#include "contract/runtime/training_device.hpp"
#include "gpu/gpu_rig.hpp"
#include "support/staged_kernels.hpp"

namespace strata::testing {
namespace {

class GpuTrainingDevice final : public TrainingDevice {
 public:
  Device& device() override { return gpu_rig().device(); }
  Kernels& kernels() override { return *gpu_rig().kernels(); }
};

}  // namespace

std::unique_ptr<Kernels> make_kernels_under_test(std::uint64_t) {
  return make_staged_kernels(gpu_rig().arena(), gpu_rig().kernels());
}

bool is_on_gpu() { return true; }

std::vector<Implementation> implementations() {
  return {{"cuda", [] { return make_kernels_under_test(); }}};
}

// The first is there to be skipped where there is none.
std::vector<DeviceCase> devices_under_test() {
  std::vector<DeviceCase> cases;
  for (int ordinal = 0; ordinal < std::max(1, num_cuda_devices()); ++ordinal)
    cases.push_back({"Cuda" + std::to_string(ordinal), [ordinal] {
                       return DeviceRig{nullptr, make_cuda_device(ordinal)};
                     }});
  return cases;
}

std::unique_ptr<TrainingDevice> make_training_device(std::uint64_t) {
  return std::make_unique<GpuTrainingDevice>();
}

}  // namespace strata::testing
