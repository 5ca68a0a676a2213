#pragma once
// SIGINT, SIGTERM and SIGHUP ask a run to end after the current step; a second one ends the process
// at once. SIGUSR1 asks it to save and go on.

#include <atomic>
#include <cstdint>

namespace strata {

class StopSignal {
 public:
  // Only one at a time. `notice` (static text) tells what the first signal does.
  explicit StopSignal(
      const char* notice = "\nstopping after this step; a second signal ends the run at once\n");
  ~StopSignal();  // Puts the former handlers back.
  const std::atomic<bool>* requested() const;
  std::atomic<bool>* save_requested() const;
  int number() const;  // of the signal that came, 0: none
  std::int64_t received_ns() const;  // when the first came, of now_ns()
};

}  // namespace strata
