#pragma once
// Who watches a measurement.

#include <atomic>
#include <functional>
#include <string>

namespace strata {

struct BenchWatch {
  // Called often, from the measuring thread: what is being measured, and the part done, 0 to 1. May
  // be empty.
  std::function<void(const std::string& what, double done)> progress = {};
  const std::atomic<bool>* stop = nullptr;  // set: end early, clean up, throw Interrupted
};

}  // namespace strata
