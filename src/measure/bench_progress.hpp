#pragma once
// How far a benchmark is, by the seconds its steps were planned to take; and where it is asked to
// stop. Thread contract: one thread.

#include <string>
#include <utility>

#include "strata/measure/bench_watch.hpp"

namespace strata {

class BenchProgress {
 public:
  explicit BenchProgress(BenchWatch watch) : watch_(std::move(watch)) {}

  void plan(double seconds) { planned_s_ += seconds; }

  // The step before has taken its planned share, whatever it took.
  void begin(std::string what, double step_s);
  // Within the step; never goes back. Throws Interrupted when stop is set.
  void at(double step_seconds);
  void at_share(double share) { at(share * step_s_); }

 private:
  const BenchWatch watch_;
  std::string what_;
  double planned_s_ = 0, before_s_ = 0, step_s_ = 0, reached_s_ = 0;
};

}  // namespace strata
