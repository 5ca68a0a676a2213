#pragma once
// The sum over ranks that every Communicator takes, so that all give the same bits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/core/dtype.hpp"

namespace strata {

// result[i] = sources[0][i] + sources[1][i] + ..., in this order; bf16 in f32, rounded once. The
// result may be one of the sources, and overlaps none otherwise. f32, f64 or bf16. A sum that is no
// number is the positive quiet NaN; one source is its own sum, bit for bit. The same on every SIMD
// target, in whatever floating-point mode the caller is.
void sum_ranks(std::span<const std::byte* const> sources, DType dtype, std::int64_t count,
               std::byte* result);

}  // namespace strata
