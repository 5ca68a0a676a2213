#pragma once
// What a run does about a drive that does not give a transfer back. The kernel may still write to
// the transfer's memory, so nothing can be freed and no orderly end exists: the run warns once per
// stall, and when it has lasted too long, says so and ends the process.
//
// Thread contract: called from any thread, also from several at once; keeps nothing between calls.

#include <filesystem>
#include <functional>
#include <string>

#include "strata/io/io_engine.hpp"

namespace strata {

inline constexpr int exit_drive_stalled = 3;  // the process's exit code
inline constexpr int stalls_until_end = 10;   // times IoOptions::stall_seconds

class StallPolicy {
 public:
  // `say` shows one message to the user, `end` ends the process.
  StallPolicy(double stall_seconds, std::function<void(const std::string&)> say,
              std::function<void()> end);

  // As IoOptions::on_stall is called: every `stall_seconds` of a stall.
  void operator()(double seconds, const std::string& in_flight) const;

 private:
  double stall_seconds_;
  std::function<void(const std::string&)> say_;
  std::function<void()> end_;
};

// Says it on stderr and ends the process with exit_drive_stalled.
StallPolicy ending_stall_policy(double stall_seconds);

}  // namespace strata
