#pragma once
// What kernels compute per second on a device, as a machine profile has it: products of the sizes
// that Llamas use, attention, and the cost of a call that does next to nothing. Thread contract:
// one thread, which works along on the host.

#include <cstdint>
#include <span>
#include <vector>

#include "attention_bench.hpp"
#include "bench_progress.hpp"
#include "kernel_timer.hpp"
#include "product_bench.hpp"
#include "strata/core/dtype.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

// The square product and the widest of each width, by rising FLOPs.
std::vector<ProductSize> product_sizes(std::span<const std::int64_t> widths, std::int64_t tokens);

// The most bytes that a product of these sizes takes, in f32.
std::uint64_t product_bytes(std::span<const ProductSize> sizes);

// Of forward and both backward products together, as a step has as many of each.
std::vector<MatmulRate> product_rates(KernelTimer& timer, DType dtype,
                                      std::span<const ProductSize> sizes, BenchProgress& progress);

// The rate of causal attention, forward and backward together, over that of products of as many
// FLOPs.
double attention_efficiency(KernelTimer& timer, DType dtype, const AttentionSize& size,
                            std::span<const MatmulRate> products);

Samples kernel_call_seconds(KernelTimer& timer);

// Bytes read plus written per second by copies of `bytes` within the device's memory.
Samples device_copy_rates(KernelTimer& timer, std::uint64_t bytes);

// The rate at `flops`, over log(flops) between the sizes that were measured. Not of an empty list.
double rate_at(std::span<const MatmulRate> rates, double flops);

}  // namespace strata
