#pragma once
// What a verifier found, for a failure message.

#include <string>
#include <vector>

#include "strata/plan/plan.hpp"

namespace strata::testing {

// A line each.
inline std::string joined(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& v : violations) text += v.what + "\n";
  return text;
}

}  // namespace strata::testing
