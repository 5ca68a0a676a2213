#pragma once
// The time a cache line takes from one core to another. On a virtual machine it tells where its
// cores are at the moment: near ones share a link to memory, far ones have one each.
// Thread contract: one thread.

#include <optional>
#include <string>

namespace strata {

struct PingCores {
  int first = 0, second = 0;
};

// The two usable cores that are farthest apart in the hardware's order; none where there is one.
std::optional<PingCores> ping_cores();
std::string format_ping_cores(const std::optional<PingCores>& cores);  // "0 and 7"; "" for none

// One way; the median of several rounds, so that a thread that was put aside does not count.
double ping_pong_ns(const PingCores& cores);

}  // namespace strata
