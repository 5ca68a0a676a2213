#pragma once
// Times the optimizer's pass on a device, in one layout of its state. Thread contract: one thread.

#include <cstdint>

#include "kernel_timer.hpp"
#include "strata/measure/adam_passes.hpp"

namespace strata {

TimedCall time_update(KernelTimer& timer, const AdamLayout& layout, std::int64_t count);

}  // namespace strata
