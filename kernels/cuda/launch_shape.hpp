#pragma once
// How a kernel is launched, computed on the host from shapes and the device's properties by plain
// functions, which run in tests without a device.

#include <algorithm>
#include <cstdint>

#include "strata/core/bytes.hpp"

namespace strata::cuda {

// What launch plans ask of a device. The defaults are the least that is supported: sm_80.
struct DeviceLimits {
  int multiprocessors = 108;
  int threads_per_multiprocessor = 2048;
  std::int64_t shared_bytes_max = 163 * 1024;  // of one block, on demand
};

struct LaunchShape {
  std::int64_t grid_x = 1;
  std::int64_t grid_y = 1;
  int threads = 32;
  std::int64_t shared_bytes = 0;
};

inline constexpr int warp_threads = 32;

// Blocks of 256 threads whose loops stride over the grid: enough to fill the device, no more than
// there is work. Which block does what never changes a result.
inline LaunchShape strided_shape(std::int64_t work_items, const DeviceLimits& limits) {
  constexpr int threads = 256;
  const std::int64_t resident =
      std::int64_t{limits.multiprocessors} * (limits.threads_per_multiprocessor / threads);
  return {std::clamp<std::int64_t>(ceil_div(work_items, threads), 1, 2 * resident), 1, threads, 0};
}

}  // namespace strata::cuda
