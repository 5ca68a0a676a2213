#include "bench_progress.hpp"

#include <algorithm>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {

void BenchProgress::begin(std::string what, double step_s) {
  before_s_ += step_s_;
  step_s_ = step_s;
  reached_s_ = 0;
  what_ = std::move(what);
  at(0);
}

void BenchProgress::at(double step_seconds) {
  if (watch_.stop != nullptr && *watch_.stop)
    throw Interrupted("interrupted while measuring: " + what_);
  reached_s_ = std::max(reached_s_, std::min(step_seconds, step_s_));
  const double done_s = before_s_ + reached_s_;
  if (watch_.progress) watch_.progress(what_, std::min(1.0, done_s / std::max(planned_s_, 1e-9)));
}

}  // namespace strata
