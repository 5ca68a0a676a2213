#include "call_header.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace strata {

std::string describe(const CallHeader& call) {
  if (call.kind == Collective::barrier) return "barrier";
  std::string text =
      fmt::format("{} of {} {}", collective_name(call.kind), call.count, dtype_name(call.dtype));
  if (call.kind == Collective::broadcast || call.kind == Collective::send)
    text += fmt::format(" from rank {}", call.root);
  if (call.kind == Collective::send) text += fmt::format(" to rank {}", call.target);
  return text;
}

std::optional<std::string> mismatch(std::span<const CallHeader> calls) {
  const CallHeader& first = calls.front();
  const auto odd = std::ranges::find_if(calls, [&](const auto& call) { return call != first; });
  if (odd == calls.end()) return std::nullopt;
  std::string text = fmt::format("rank {} called {} where rank 0 called {}", odd - calls.begin(),
                                 describe(*odd), describe(first));
  if (odd->sequence != first.sequence)
    text += fmt::format(" (calls {} and {})", odd->sequence, first.sequence);
  return text;
}

}  // namespace strata
