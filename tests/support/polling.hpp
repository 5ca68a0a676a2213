#pragma once
// Waits for what another thread or process brings about and nothing tells of.

#include <chrono>
#include <thread>

namespace strata::testing {

// Polls, for a minute at most. False: it has not come true.
template <typename Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return condition();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace strata::testing
