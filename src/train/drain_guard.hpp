#pragma once
// Steps in flight read their arguments: whoever owns those waits for the steps, also when an error
// takes it out of its scope. Declare it after what it guards.

#include "strata/runtime/executor.hpp"

namespace strata {

class DrainGuard {
 public:
  explicit DrainGuard(Executor& executor) : executor_(executor) {}
  ~DrainGuard() {
    try {
      executor_.drain();
    } catch (...) {  // The failure that brought us here, or one already on its way.
    }
  }
  DrainGuard(const DrainGuard&) = delete;
  DrainGuard& operator=(const DrainGuard&) = delete;

 private:
  Executor& executor_;
};

}  // namespace strata
