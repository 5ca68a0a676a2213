// Toys of contract suites, when built into the executor's tests, train over the fake runtime.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/runtime/training_device.hpp"
#include "fake_cuda/fake_cuda.hpp"
#include "fake_cuda/streamed_kernels.hpp"
#include "src/device/cuda/cuda_device.hpp"

namespace strata::testing {
namespace {

class FakeTrainingDevice final : public TrainingDevice {
 public:
  explicit FakeTrainingDevice(std::uint64_t seed) : fake_({.seed = seed}) {}
  ~FakeTrainingDevice() override { EXPECT_THAT(fake_.complaints(), ::testing::IsEmpty()); }
  Device& device() override { return *device_; }
  Kernels& kernels() override { return *kernels_; }

 private:
  FakeCuda fake_;
  const std::unique_ptr<Device> device_ = make_cuda_device(fake_, 1, {});
  const std::unique_ptr<Kernels> host_kernels_ = make_ref_kernels();
  const std::unique_ptr<Kernels> kernels_ = make_streamed_kernels(fake_, *host_kernels_);
};

}  // namespace

std::unique_ptr<TrainingDevice> make_training_device(std::uint64_t seed) {
  return std::make_unique<FakeTrainingDevice>(seed);
}

}  // namespace strata::testing
