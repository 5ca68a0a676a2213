#include "kernel_timer.hpp"

#include <algorithm>
#include <vector>

#include "strata/core/clock.hpp"
#include "strata/program/program.hpp"

namespace strata {
namespace {

constexpr double calls_max = 10'000, seconds_min = 1e-9;

// What the call asks of the hardware, without doing it.
KernelWork work_of(const KernelTimer::Call& call, const Kernels& kernels, Stream& stream) {
  std::vector<KernelWork> works;
  call(*make_meta_kernels(kernels, works), stream);
  KernelWork sum;
  for (const KernelWork& work : works) {
    sum.flops += work.flops * work.calls;
    sum.bytes += work.bytes * work.calls;
  }
  return sum;
}

}  // namespace

KernelTimer::KernelTimer(Device& device, Kernels& kernels, const KernelTimerOptions& options)
    : device_(device), kernels_(kernels), options_(options) {
  device.use_on_this_thread();
  stream_ = device.make_stream("bench");
  begin_ = device.make_event();
  end_ = device.make_event();
}

TimedCall KernelTimer::time(const Call& call) {
  const KernelWork work = work_of(call, kernels_, *stream_);
  return {seconds([&] { call(kernels_, *stream_); }), work.flops, work.bytes};
}

Samples KernelTimer::seconds(const std::function<void()>& issue) {
  sample(issue, 1);
  const double first = sample(issue, 1);
  const double fitting = options_.sample_seconds / first;
  const int num_calls = static_cast<int>(std::clamp(fitting, 1.0, calls_max));
  Samples samples;
  for (int i = 0; i < options_.repeats; ++i)
    samples.values.push_back(sample(issue, num_calls) / num_calls);
  return samples;
}

double KernelTimer::sample(const std::function<void()>& issue, int num_calls) {
  stream_->record(*begin_);
  for (int i = 0; i < num_calls; ++i) issue();
  stream_->record(*end_);
  end_->synchronize();
  const std::int64_t begin = begin_->time_ns();
  return std::max(strata::seconds(end_->time_ns() - begin), seconds_min);
}

}  // namespace strata
