#pragma once
// Takes the samples of passes over memory. Thread contract: one thread.

#include <functional>
#include <optional>

#include "bench_progress.hpp"
#include "ping_pong.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {

struct TimedPass {
  std::function<void()> run;
  std::function<void()> roofline = {};  // empty: none
};

class PassSampler {
 public:
  // Both must outlive the sampler. `repeats` is at least 1.
  PassSampler(int repeats, BenchProgress& progress, Pings pings)
      : repeats_(repeats), progress_(progress) {
    if (pings == Pings::taken) cores_ = ping_cores();
  }

  const std::optional<PingCores>& cores() const { return cores_; }
  // Fills the samples of `result`, roofline and pass in turn, after one of each that do not count.
  void sample(const TimedPass& pass, PassResult& result) const;

 private:
  void ping(PassResult& result) const;

  int repeats_;
  BenchProgress& progress_;
  std::optional<PingCores> cores_;
};

}  // namespace strata
