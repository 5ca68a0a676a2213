#pragma once
// What the host kernels compute per second: products of the sizes that Llamas use, attention, and
// the cost of a call that does next to nothing. Thread contract: one thread, which works along.

#include <cstdint>
#include <span>
#include <vector>

#include "call_time.hpp"
#include "strata/core/dtype.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/plan/machine.hpp"

namespace strata {

// t tokens, k inputs, n outputs.
struct ProductSize {
  std::int64_t t = 0, k = 0, n = 0;
  double flops() const;
};
// The square product and the widest of each width, by rising FLOPs.
std::vector<ProductSize> product_sizes(std::span<const std::int64_t> widths, std::int64_t tokens);

// The most bytes that a product of these sizes takes, in f32.
std::uint64_t product_bytes(std::span<const ProductSize> sizes);

// Of forward and both backward products together, as a step has as many of each.
std::vector<MatmulRate> product_rates(Kernels& kernels, DType dtype,
                                      std::span<const ProductSize> sizes, MachineBenchRun& run);

// The rate of causal attention, forward and backward together, over that of products of as many
// FLOPs.
double attention_efficiency(Kernels& kernels, DType dtype, std::int64_t tokens,
                            std::span<const MatmulRate> products, MachineBenchRun& run);

double seconds_per_kernel_call(Kernels& kernels, MachineBenchRun& run);

// The rate at `flops`, over log(flops) between the sizes that were measured. Not of an empty list.
double rate_at(std::span<const MatmulRate> rates, double flops);

}  // namespace strata
