#pragma once
// How long a kernel call takes on a device: queued as often as the clock can tell, timed by the
// events before and after, and that several times. Thread contract: one thread.

#include <cstdint>
#include <functional>
#include <memory>

#include "bench_tensor.hpp"
#include "strata/device/device.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/measure/samples.hpp"

namespace strata {

struct TimedCall {
  Samples seconds;              // of one call
  double flops = 0, bytes = 0;  // of one call, as the planner counts them
  double flops_per_s() const { return flops / seconds.median(); }
  double bytes_per_s() const { return bytes / seconds.median(); }
};

struct KernelTimerOptions {
  int repeats = 3;
  double sample_seconds = 2e-3;
};

class KernelTimer {
 public:
  using Call = std::function<void(Kernels&, Stream&)>;

  // Device and kernels must outlive it. The thread gives work to the device from now on.
  KernelTimer(Device& device, Kernels& kernels, const KernelTimerOptions& options);

  Device& device() const { return device_; }
  const Kernels& kernels() const { return kernels_; }
  Stream& stream() const { return *stream_; }
  BenchTensor tensor(DType dtype, Shape shape, BenchValues values = BenchValues::random) const {
    return {device_, *stream_, dtype, shape, values};
  }

  // The first calls, which pay for cold caches and for what is made when first needed, do not
  // count.
  TimedCall time(const Call& call);
  // Of whatever `issue` gives to the stream.
  Samples seconds(const std::function<void()>& issue);

 private:
  double sample(const std::function<void()>& issue, int num_calls);

  Device& device_;
  Kernels& kernels_;
  const KernelTimerOptions options_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_, end_;
};

}  // namespace strata
