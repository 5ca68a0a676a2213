#pragma once
// What copies between host memory and a device's memory reach: one thread each way, as the lanes of
// a run are. Thread contract: one thread; makes one more.

#include <cstdint>

#include "bench_progress.hpp"
#include "strata/device/device.hpp"
#include "strata/measure/samples.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

struct LinkRates {
  Samples up, down, both;  // bytes per second; both: the sum
  LinkProfile profile() const;
};

// `bytes` each way from pinned memory, copied in tiles; progress takes three steps of 1.
LinkRates bench_link(Device& device, std::uint64_t bytes, int repeats, BenchProgress& progress);

}  // namespace strata
