#pragma once
// A Heartbeat calls a function every so often, on a thread of its own, while its owner is at
// something that takes long. Thread contract: one thread.

#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

namespace strata {

constexpr std::chrono::seconds beat_pause(1);  // for those who only tell that they live

class Heartbeat {
 public:
  // Ends when `beat` throws, which is nobody's failure: whoever hears it has gone.
  Heartbeat(std::chrono::milliseconds pause, std::function<void()> beat);

 private:
  void run(const std::stop_token& stop) const;

  const std::chrono::milliseconds pause_;
  const std::function<void()> beat_;
  std::jthread thread_;  // last: uses the rest
};

}  // namespace strata
