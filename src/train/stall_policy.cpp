#include "strata/train/stall_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace strata {
namespace {

// Tiles and checkpoints may stall: the drive is named by the first file that waits for it, as the
// engine lists them, "write to /out/checkpoint-8.partial/00000-master.bin: 4096 bytes ...".
std::string drive_in(const std::string& in_flight) {
  for (const std::string_view action : {"read of ", "write to "}) {
    if (!in_flight.starts_with(action)) continue;
    const std::size_t end = in_flight.find(": ");
    return "the drive of " + in_flight.substr(action.size(), end - action.size());
  }
  return "a drive";
}

}  // namespace

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
      fmt::format("warning: {} has kept a transfer for more than {:.3g} s "
                  "(offload.io_stall_seconds); it gave another one back {:.3g} s ago. In "
                  "flight:\n{}",
                  drive_in(in_flight), stall_seconds_, silent_seconds, in_flight));
}

void StallPolicy::warn_of_silence(double silent_seconds, const std::string& in_flight) const {
  say_(
      fmt::format("warning: {} has given nothing back for {:.0f} s; waiting for {:.0f} s more "
                  "before the run is ended. In flight:\n{}",
                  drive_in(in_flight), silent_seconds, limit(), in_flight));
}

void StallPolicy::end_run(double silent_seconds, const std::string& in_flight) const {
  say_(
      fmt::format("{} has given nothing back for {:.0f} s, {} times offload.io_stall_seconds "
                  "since the warning: the run ends here. It cannot end in order while the kernel "
                  "holds its memory; the next run on these drives reclaims what it left, and "
                  "checkpoints stand as they were. Look at the kernel's log (dmesg) and at the "
                  "drive. In flight:\n{}",
                  drive_in(in_flight), silent_seconds, stalls_until_end, in_flight));
  end_();
}

StallPolicy ending_stall_policy(double stall_seconds) {
  return {stall_seconds, [](const std::string& text) { fmt::print(stderr, "strata: {}\n", text); },
          [] { std::_Exit(exit_drive_stalled); }};
}

}  // namespace strata
