#include "strata/train/stall_policy.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace strata {

StallPolicy::StallPolicy(double stall_seconds, std::function<void(const std::string&)> say,
                         std::function<void()> end)
    : stall_seconds_(stall_seconds), say_(std::move(say)), end_(std::move(end)) {}

void StallPolicy::operator()(double seconds, const std::string& in_flight) const {
  const double limit = stalls_until_end * stall_seconds_;
  if (seconds >= limit) {
    say_(
        fmt::format("a drive of offload.nvme_paths has given nothing back for {:.0f} s, {} times "
                    "offload.io_stall_seconds: the run ends here. It cannot end in order while the "
                    "kernel holds its memory; the next run on these drives reclaims its scratch. "
                    "Look at the kernel's log (dmesg) and at the drive. In flight:\n{}",
                    seconds, stalls_until_end, in_flight));
    end_();
  } else if (seconds < 2 * stall_seconds_) {  // The first call of this stall.
    say_(
        fmt::format("warning: a drive of offload.nvme_paths has given nothing back for {:.0f} s; "
                    "waiting until {:.0f} s before the run is ended. In flight:\n{}",
                    seconds, limit, in_flight));
  }
}

StallPolicy ending_stall_policy(double stall_seconds) {
  return {stall_seconds, [](const std::string& text) { fmt::print(stderr, "strata: {}\n", text); },
          [] { std::_Exit(exit_drive_stalled); }};
}

}  // namespace strata
