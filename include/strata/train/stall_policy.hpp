#pragma once
// What a run does about a drive that does not give a transfer back. The kernel may still write to
// the transfer's memory, so nothing can be freed and no orderly end exists: the run warns once per
// stall, and when the drive stays silent for too long after that, says so and ends the process. A
// drive that keeps a transfer but gives others back is only warned of.
//
// Thread contract: called by one thread at a time, as IoOptions::on_stall is.

#include <filesystem>
#include <functional>
#include <limits>
#include <string>

#include "strata/io/io_engine.hpp"

namespace strata {

inline constexpr int exit_drive_stalled = 3;  // the process's exit code
inline constexpr int stalls_until_end = 10;   // times IoOptions::stall_seconds, from the warning on

class StallPolicy {
 public:
  // `say` shows one message to the user, `end` ends the process.
  StallPolicy(double stall_seconds, std::function<void(const std::string&)> say,
              std::function<void()> end);

  // As IoOptions::on_stall is called: every `stall_seconds` of a stall.
  void operator()(double silent_seconds, const std::string& in_flight);

 private:
  bool is_new(double silent_seconds) const;
  void warn_of_slowness(double silent_seconds, const std::string& in_flight) const;
  void warn_of_silence(double silent_seconds, const std::string& in_flight) const;
  void end_run(double silent_seconds, const std::string& in_flight) const;
  double limit() const { return stalls_until_end * stall_seconds_; }

  double stall_seconds_;
  // Of the stall that was told of last; from its beginning.
  double warned_at_ = 0;
  double last_told_at_ = std::numeric_limits<double>::infinity();
  std::function<void(const std::string&)> say_;
  std::function<void()> end_;
};

// Says it on stderr and ends the process with exit_drive_stalled.
StallPolicy ending_stall_policy(double stall_seconds);

}  // namespace strata
