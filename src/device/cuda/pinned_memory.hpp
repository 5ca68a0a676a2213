#pragma once
// Host memory that a CUDA device copies from and to at full speed: mapped on huge pages where the
// system grants them, placed, and registered with the runtime as a whole.

#include <cstdint>
#include <functional>
#include <span>

#include "device/cuda/cuda_api.hpp"
#include "strata/device/device.hpp"

namespace strata {

// Of the calling thread's device, which is `ordinal`. `place` may be empty. Copies that a failure
// has left behind are over before the memory is gone. Throws OutOfMemory, or CudaError when it
// cannot be registered.
Slab allocate_pinned_memory(CudaApi& api, int ordinal, std::uint64_t bytes,
                            const std::function<void(std::span<std::byte>)>& place);

}  // namespace strata
