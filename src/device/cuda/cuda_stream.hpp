#pragma once
// Streams and events of a CUDA device.

#include <cstdint>
#include <string>
#include <string_view>

#include "device/cuda/cuda_handles.hpp"
#include "device/cuda/device_clock.hpp"
#include "device/cuda/staging_buffer.hpp"
#include "strata/device/device.hpp"

namespace strata {

class CudaEvent final : public Event {
 public:
  CudaEvent(CudaApi& api, DeviceClock& clock) : api_(api), clock_(clock), event_(api) {}

  void synchronize() override {
    check(api_, api_.event_synchronize(event_.get()), "cudaEventSynchronize");
  }
  bool is_reached() override {
    bool is_reached = false;
    check(api_, api_.event_query(event_.get(), is_reached), "cudaEventQuery");
    return is_reached;
  }
  std::int64_t time_ns() override { return clock_.time_ns(event_.get()); }
  CudaEventHandle handle() const { return event_.get(); }

 private:
  CudaApi& api_;
  DeviceClock& clock_;
  CudaEventOwner event_;
};

class CudaStream final : public Stream {
 public:
  CudaStream(CudaApi& api, int ordinal, std::string_view name)
      : api_(api), name_(name), stream_(api), staging_(api, ordinal) {}

  void record(Event& event) override {
    check(api_, api_.event_record(handle_of(event), stream_.get()), "cudaEventRecord");
  }
  void wait(Event& event) override {
    check(api_, api_.stream_wait_event(stream_.get(), handle_of(event)), "cudaStreamWaitEvent");
  }
  void synchronize() override {
    check(api_, api_.stream_synchronize(stream_.get()), "cudaStreamSynchronize");
  }
  void* native() const override { return stream_.get(); }

  const std::string& name() const { return name_; }
  StagingBuffer& staging() { return staging_; }

 private:
  static CudaEventHandle handle_of(const Event& event) {
    return static_cast<const CudaEvent&>(event).handle();
  }
  CudaApi& api_;
  const std::string name_;
  CudaStreamOwner stream_;
  StagingBuffer staging_;
};

}  // namespace strata
