#include "device/cuda/device_clock.hpp"

#include <cmath>

#include "strata/core/clock.hpp"

namespace strata {
namespace {

constexpr double origin_ms_max = 4000;  // single precision then tells half a microsecond

}  // namespace

DeviceClock::DeviceClock(CudaApi& api, int ordinal)
    : api_(api), ordinal_(ordinal), stream_(api), origin_(api) {
  take_origin();
}

std::int64_t DeviceClock::time_ns(CudaEventHandle event) {
  const std::lock_guard lock(mutex_);
  double ms = ms_since_origin(event);
  if (std::abs(ms) > origin_ms_max) {
    take_origin();
    ms = ms_since_origin(event);
  }
  return origin_ns_ + std::llround(ms * 1e6);
}

void DeviceClock::take_origin() {
  check(api_, api_.set_device(ordinal_), "cudaSetDevice");
  check(api_, api_.event_record(origin_.get(), stream_.get()), "cudaEventRecord");
  check(api_, api_.event_synchronize(origin_.get()), "cudaEventSynchronize");
  origin_ns_ = now_ns();
}

double DeviceClock::ms_since_origin(CudaEventHandle event) {
  float ms = 0;
  check(api_, api_.elapsed_ms(ms, origin_.get(), event), "cudaEventElapsedTime");
  return static_cast<double>(ms);
}

}  // namespace strata
