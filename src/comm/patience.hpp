#pragma once
// How a thread waits for what it can only ask about: at first it asks again at once, then it lets
// others run, then it sleeps, longer each time up to 100 us. Also how long it has waited. One
// thread.

#include <algorithm>
#include <chrono>
#include <thread>

namespace strata {

class Patience {
 public:
  double waited_s() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }
  void restart() {
    began_ = Clock::now();
    num_pauses_ = 0;
    sleep_us_ = 1;
  }
  void pause() {
    if (++num_pauses_ <= spins_max) return;
    if (num_pauses_ <= yields_max) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(sleep_us_));
    sleep_us_ = std::min(2 * sleep_us_, sleep_us_max);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int spins_max = 20, yields_max = 60, sleep_us_max = 100;
  Clock::time_point began_ = Clock::now();
  int num_pauses_ = 0, sleep_us_ = 1;
};

}  // namespace strata
