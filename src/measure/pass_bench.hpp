#pragma once
// What the benchmarks of passes have in common. Thread contract: one thread.

#include <cstdint>
#include <span>

#include "pass_sampler.hpp"
#include "strata/measure/pass_report.hpp"

namespace strata {

// Throws ConfigError.
void check_repeats(int repeats);
void check_threads(std::span<const int> threads);
// Throws OutOfMemory unless this much, and some to spare, is free.
void check_free_memory(std::uint64_t wanted_bytes, const char* advice);

PassReport begin_pass_report(PassBench bench, int repeats, const PassSampler& sampler);
// What is known once all results are in.
void end_pass_report(PassReport& report);

}  // namespace strata
