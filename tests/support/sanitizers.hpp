#pragma once
// Which sanitizer a test was built with: tests do less where every access costs ten times as much.

namespace strata::testing {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// `plain` in an ordinary build, `fewer` under a sanitizer.
constexpr int rounds(int plain, int fewer) { return sanitized ? fewer : plain; }

}  // namespace strata::testing
