#pragma once
// What collectives among threads of this process reach. Thread contract: one thread; makes one per
// rank.

#include <cstdint>

#include "machine_bench_run.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

// `ranks` is 2 at least; each gathers `bytes` in all.
CommProfile bench_comm(int ranks, std::uint64_t bytes, MachineBenchRun& run);

}  // namespace strata
