#pragma once
// What copies between host memory and the host device's memory reach: one thread each way, as the
// lanes of a run are. Thread contract: one thread; makes one more.

#include <cstdint>

#include "call_time.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

// `bytes` each way, copied in tiles.
LinkProfile bench_link(std::uint64_t bytes, MachineBenchRun& run);

}  // namespace strata
