#pragma once
// The device that toys train on. Which depends on the executable: the fake runtime's in
// runtime_test, the machine's GPU in cuda_test.

#include <memory>

#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::testing {

class TrainingDevice {
 public:
  virtual ~TrainingDevice() = default;
  virtual Device& device() = 0;
  virtual Kernels& kernels() = 0;  // accumulate and square_sums at least
};

std::unique_ptr<TrainingDevice> make_training_device(std::uint64_t seed);

}  // namespace strata::testing
