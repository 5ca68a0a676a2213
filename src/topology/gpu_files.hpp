#pragma once
// The GPUs of a /proc and /sys of the caller's choice.

#include "strata/topology/gpu.hpp"
#include "system_files.hpp"

namespace strata {

GpuInventory read_gpus(const SystemRoots& roots);

}  // namespace strata
