#include "gpu/gpu_rig.hpp"

#include "kernels/cuda/cuda_kernels.hpp"
#include "strata/core/bytes.hpp"
#include "strata/device/cuda_devices.hpp"

namespace strata::testing {
namespace {

std::unique_ptr<GpuRig>& kept_rig() {
  static std::unique_ptr<GpuRig> rig;
  return rig;
}

}  // namespace

GpuRig::GpuRig()
    : device_(make_cuda_device(0)),
      workspace_(device_->allocate(32 * MiB)),
      arena_(*device_),
      kernels_(cuda::make_cuda_kernels({0, {workspace_.data(), workspace_.bytes()}})) {}

GpuRig& gpu_rig() {
  if (kept_rig() == nullptr) kept_rig() = std::make_unique<GpuRig>();
  return *kept_rig();
}

void give_back_gpu_rig() { kept_rig().reset(); }

std::string missing_gpu() { return read_cuda_devices().failure; }

}  // namespace strata::testing
