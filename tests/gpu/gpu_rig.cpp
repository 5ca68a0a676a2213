#include "gpu/gpu_rig.hpp"

#include "kernels/cuda/cuda_kernels.hpp"
#include "strata/core/bytes.hpp"
#include "strata/device/cuda_devices.hpp"

namespace strata::testing {
namespace {

struct KeptRig {
  std::unique_ptr<GpuRig> rig;
  Operands operands = Operands::together;
};

KeptRig& kept() {
  static KeptRig kept;
  return kept;
}

}  // namespace

GpuRig::GpuRig(Operands operands)
    : device_(make_cuda_device(0)),
      workspace_(device_->allocate(32 * MiB)),
      arena_(*device_, operands),
      kernels_(cuda::make_cuda_kernels({0, {workspace_.data(), workspace_.bytes()}})) {}

GpuRig& gpu_rig() {
  if (kept().rig == nullptr) kept().rig = std::make_unique<GpuRig>(kept().operands);
  return *kept().rig;
}

void set_gpu_operands(Operands operands) { kept().operands = operands; }

void give_back_gpu_rig() { kept().rig.reset(); }

std::string missing_gpu() { return read_cuda_devices().failure; }

}  // namespace strata::testing
