#include "strata/train/stall_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace strata {

StallPolicy::StallPolicy(double stall_seconds, std::function<void(const std::string&)> say,
                         std::function<void()> end)
    : stall_seconds_(stall_seconds), say_(std::move(say)), end_(std::move(end)) {}

void StallPolicy::operator()(double silent_seconds, const std::string& in_flight) {
  if (silent_seconds < stall_seconds_) return warn_of_slowness(silent_seconds, in_flight);
  const bool warn = is_new(silent_seconds);
  last_told_at_ = silent_seconds;
  if (warn) {
    warned_at_ = silent_seconds;
    warn_of_silence(silent_seconds, in_flight);
  } else if (silent_seconds - warned_at_ >= limit()) {
    end_run(silent_seconds, in_flight);
  }
}

// The first call of a stall comes after one `stall_seconds`, or much later if we had no time.
bool StallPolicy::is_new(double silent_seconds) const {
  return silent_seconds < std::max(2 * stall_seconds_, last_told_at_);
}

void StallPolicy::warn_of_slowness(double silent_seconds, const std::string& in_flight) const {
  say_(
      fmt::format("warning: a drive of offload.nvme_paths has kept a transfer for more than {:.3g} "
                  "s (offload.io_stall_seconds); it gave another one back {:.3g} s ago. In "
                  "flight:\n{}",
                  stall_seconds_, silent_seconds, in_flight));
}

void StallPolicy::warn_of_silence(double silent_seconds, const std::string& in_flight) const {
  say_(
      fmt::format("warning: a drive of offload.nvme_paths has given nothing back for {:.0f} s; "
                  "waiting for {:.0f} s more before the run is ended. In flight:\n{}",
                  silent_seconds, limit(), in_flight));
}

void StallPolicy::end_run(double silent_seconds, const std::string& in_flight) const {
  say_(
      fmt::format("a drive of offload.nvme_paths has given nothing back for {:.0f} s, {} times "
                  "offload.io_stall_seconds since the warning: the run ends here. It cannot end in "
                  "order while the kernel holds its memory; the next run on these drives reclaims "
                  "its scratch. Look at the kernel's log (dmesg) and at the drive. In flight:\n{}",
                  silent_seconds, stalls_until_end, in_flight));
  end_();
}

StallPolicy ending_stall_policy(double stall_seconds) {
  return {stall_seconds, [](const std::string& text) { fmt::print(stderr, "strata: {}\n", text); },
          [] { std::_Exit(exit_drive_stalled); }};
}

}  // namespace strata
