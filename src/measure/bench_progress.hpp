#pragma once
// How far a benchmark is, by the seconds its steps were planned to take; and where it is asked to
// stop. Thread contract: one thread.

#include <atomic>
#include <functional>
#include <string>

namespace strata {

class BenchProgress {
 public:
  using Show = std::function<void(const std::string& what, double done)>;

  // `stop` may be null, `show` empty.
  BenchProgress(Show show, const std::atomic<bool>* stop);

  void plan(double seconds) { planned_s_ += seconds; }

  // The step before has taken its planned share, whatever it took.
  void begin(std::string what, double step_s);
  // Within the step; never goes back. Throws Interrupted when stop is set.
  void at(double step_seconds);
  void at_share(double share) { at(share * step_s_); }

 private:
  const Show show_;
  const std::atomic<bool>* const stop_;
  std::string what_;
  double planned_s_ = 0, before_s_ = 0, step_s_ = 0, reached_s_ = 0;
};

}  // namespace strata
