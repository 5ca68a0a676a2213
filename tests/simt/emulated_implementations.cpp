// Contract suites of kernels, when built into the emulator's tests, run on it. Operands are staged
// as they are on a GPU: what stages them there is seen to be right here.

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/kernels/kernels_harness.hpp"
#include "simt/emulated_kernels.hpp"
#include "support/staged_kernels.hpp"

namespace strata::testing {

std::unique_ptr<Kernels> make_kernels_under_test(std::uint64_t seed) {
  static const auto device = make_host_device({});
  static StagingArena arena(*device);
  return make_staged_kernels(arena, simt::make_emulated_kernels(seed));
}

bool is_on_gpu() { return false; }

std::vector<Implementation> implementations() {
  return {{"emulated", [] { return make_kernels_under_test(); }}};
}

}  // namespace strata::testing
