#pragma once
// Tells when events were reached on the clock of now_ns(). CUDA tells times between events in
// single precision, so the origin is taken anew every few seconds: errors stay at the tens of
// microseconds that taking it costs. Thread contract: any thread.

#include <cstdint>
#include <mutex>

#include "device/cuda/cuda_api.hpp"
#include "device/cuda/cuda_handles.hpp"

namespace strata {

class DeviceClock {
 public:
  explicit DeviceClock(CudaApi& api, int ordinal);

  // Of an event that has been reached.
  std::int64_t time_ns(CudaEventHandle event);

 private:
  void take_origin();
  double ms_since_origin(CudaEventHandle event);

  CudaApi& api_;
  const int ordinal_;
  std::mutex mutex_;
  CudaStreamOwner stream_;  // nothing else runs on it
  CudaEventOwner origin_;
  std::int64_t origin_ns_ = 0;
};

}  // namespace strata
