#pragma once
// A choice of SIMD target for what Highway dispatches at run time.

#include <cstdint>
#include <vector>

#include "hwy/highway.h"

namespace strata::testing {

// Pins Highway's choice while alive.
class ScopedTarget {
 public:
  explicit ScopedTarget(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  ~ScopedTarget() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

// Every target that this build has and this machine runs.
inline std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> result;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
    result.push_back(left & -left);
  }
  return result;
}

}  // namespace strata::testing
