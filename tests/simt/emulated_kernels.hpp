#pragma once
// The CUDA kernels behind the interface of all others, on the emulator; matrix products, which on a
// device are a library's, are the reference's. Every launch happens under another order of blocks
// and threads, and a Fault is thrown as it is found.

#include <cstdint>
#include <memory>

#include "strata/kernels/kernels.hpp"

namespace strata::simt {

std::unique_ptr<Kernels> make_emulated_kernels(std::uint64_t seed);

}  // namespace strata::simt
