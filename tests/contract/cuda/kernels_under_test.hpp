#pragma once
// What the suites here hold: the kernels of kernels/cuda, behind the interface of all kernels and
// on memory of their device, by way of support/staged_kernels.hpp. Which device that is depends on
// the executable: the emulator in simt_test, the machine's GPU in cuda_test.

#include <cstdint>
#include <memory>

#include "strata/kernels/kernels.hpp"

namespace strata::testing {

// Under an order of blocks and threads that follows from the seed; a GPU takes its own.
std::unique_ptr<Kernels> make_kernels_under_test(std::uint64_t seed = 1);

// On a GPU tests take sizes of real work; the emulator would need minutes for them.
bool is_on_gpu();

}  // namespace strata::testing
