#pragma once
// What a measurement of an accelerator runs on: a device, kernels for it, and the memory that these
// need. Thread contract: one thread.

#include <memory>

#include "strata/device/cuda_devices.hpp"
#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {

class BenchAccelerator {
 public:
  BenchAccelerator(std::unique_ptr<Device> device, Slab workspace, std::unique_ptr<Kernels> kernels)
      : device_(std::move(device)),
        workspace_(std::move(workspace)),
        kernels_(std::move(kernels)) {}

  // What a run can have of a GPU: what was free, without its kernels' workspace.
  std::uint64_t free_bytes() const { return device_->info().memory_bytes - workspace_.bytes(); }

  Device& device() { return *device_; }
  Kernels& kernels() { return *kernels_; }

 private:
  std::unique_ptr<Device> device_;
  Slab workspace_;  // of the kernels
  std::unique_ptr<Kernels> kernels_;
};

// The GPU of this ordinal. Throws ConfigError with the reason where there is none.
CudaDeviceFacts gpu_facts(const CudaInventory& inventory, int ordinal);
BenchAccelerator open_gpu(const CudaDeviceFacts& gpu);
// The host standing in for one, by these kernels.
BenchAccelerator host_accelerator(std::unique_ptr<Kernels> kernels);

}  // namespace strata
