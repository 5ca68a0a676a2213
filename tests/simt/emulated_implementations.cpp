// Contract suites of kernels, when built into the emulator's tests, run on it.

#include "contract/kernels/kernels_harness.hpp"
#include "simt/emulated_kernels.hpp"

namespace strata::testing {

std::vector<Implementation> implementations() {
  return {{"emulated", [] { return simt::make_emulated_kernels(1); }}};
}

}  // namespace strata::testing
