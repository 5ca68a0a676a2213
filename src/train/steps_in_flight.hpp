#pragma once
// The arguments of an executor's steps in flight. The executor reads a step's arguments until two
// later steps have been submitted, so slots take turns; the destructor waits for those that still
// run, also when an error takes the owner out of its scope.

#include <array>
#include <cstdint>
#include <string_view>

#include "strata/runtime/executor.hpp"

namespace strata {

// A Slot has a member `args`.
template <typename Slot>
class StepsInFlight {
 public:
  explicit StepsInFlight(Executor& executor) : executor_(executor) {}
  ~StepsInFlight() {
    try {
      executor_.drain();
    } catch (...) {  // The failure that brought us here, or one already on its way.
    }
  }
  StepsInFlight(const StepsInFlight&) = delete;
  StepsInFlight& operator=(const StepsInFlight&) = delete;

  // The slot to fill for the next step.
  Slot& next() { return slots_[submitted_ % slots_.size()]; }
  void submit(std::string_view schedule) {
    executor_.submit(schedule, next().args);
    ++submitted_;
  }
  // The result of the oldest step not taken yet; waits for it.
  const StepResult& take() {
    ++taken_;
    return executor_.wait_result();
  }
  std::uint64_t num_untaken() const { return submitted_ - taken_; }

 private:
  Executor& executor_;
  std::array<Slot, 3> slots_;  // two in flight and one being filled
  std::uint64_t submitted_ = 0, taken_ = 0;
};

}  // namespace strata
