#include "train/heartbeat.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "strata/core/error.hpp"

namespace strata {

Heartbeat::Heartbeat(std::chrono::milliseconds pause, std::function<void()> beat)
    : pause_(pause),
      beat_(std::move(beat)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Heartbeat::run(const std::stop_token& stop) const {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  try {
    while (!stopped.wait_for(lock, stop, pause_, [&] { return stop.stop_requested(); })) beat_();
  } catch (const Error&) {
  }
}

}  // namespace strata
