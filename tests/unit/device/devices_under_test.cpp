#include <gtest/gtest.h>

#include "contract/device/device_cases.hpp"
#include "fake_cuda/fake_cuda.hpp"
#include "src/device/cuda/cuda_device.hpp"
#include "strata/core/bytes.hpp"

namespace strata::testing {
namespace {

DeviceRig over_fake(std::uint64_t seed) {
  const auto fake = std::make_shared<FakeCuda>(FakeCudaOptions{.seed = seed});
  return {fake, make_cuda_device(*fake, 1, {}), [fake = fake.get()] {
            EXPECT_EQ(fake->complaints(), std::vector<std::string>{});
            EXPECT_EQ(fake->leaks(), std::vector<std::string>{});
          }};
}

// On a system that lets no memory be pinned but the device's own buffers.
DeviceRig over_fake_that_pins_nothing(std::uint64_t seed) {
  const auto fake = std::make_shared<FakeCuda>(FakeCudaOptions{.seed = seed});
  CudaDeviceOptions options;
  options.place_pinned = [fake = fake.get()](std::span<std::byte> memory) {
    fake->refuse_pinning(memory);
  };
  options.on_pageable = [](const std::string&) {};
  return {fake, make_cuda_device(*fake, 1, options), [fake = fake.get()] {
            EXPECT_EQ(fake->complaints(), std::vector<std::string>{});
            EXPECT_EQ(fake->leaks(), std::vector<std::string>{});
          }};
}

}  // namespace

std::vector<DeviceCase> devices_under_test() {
  std::vector<DeviceCase> cases;
  cases.push_back({"Host", [] {
                     return DeviceRig{nullptr, make_host_device({.memory_bytes = GiB})};
                   }});
  for (const std::uint64_t seed : {1, 2, 3})
    cases.push_back({"FakeCuda" + std::to_string(seed), [seed] { return over_fake(seed); }});
  cases.push_back({"FakeCudaPageable", [] { return over_fake_that_pins_nothing(1); }});
  return cases;
}

}  // namespace strata::testing
