#pragma once
// The machine's first GPU and the CUDA kernels on it, made when a test first asks and kept until
// all have ended.

#include <cstddef>
#include <memory>
#include <string>

#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"
#include "support/staged_call.hpp"

namespace strata::testing {

class GpuRig {
 public:
  explicit GpuRig(Operands operands);

  Device& device() { return *device_; }
  StagingArena& arena() { return arena_; }
  const std::shared_ptr<Kernels>& kernels() const { return kernels_; }

 private:
  const std::unique_ptr<Device> device_;
  const Slab workspace_;  // of matrix products
  StagingArena arena_;
  const std::shared_ptr<Kernels> kernels_;
};

GpuRig& gpu_rig();
void set_gpu_operands(Operands operands);  // of rigs made from now on
void give_back_gpu_rig();

// Why there is no GPU to test; empty: there is one.
std::string missing_gpu();

}  // namespace strata::testing
