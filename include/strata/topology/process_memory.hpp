#pragma once
// What this process itself holds of host memory. Thread contract: any thread.

#include <cstdint>

namespace strata {

// The most that was ever resident, mapped files included; 0: the kernel does not say.
std::uint64_t most_resident_bytes();

}  // namespace strata
