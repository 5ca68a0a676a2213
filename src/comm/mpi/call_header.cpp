#include "call_header.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace strata {

std::string describe(const CallHeader& call) {
  return describe(call.kind, call.dtype, call.count, call.root, call.target);
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
