#pragma once
// The sum over ranks that every Communicator takes, so that all give the same bits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/core/dtype.hpp"

namespace strata {

// result[i] = sources[0][i] + sources[1][i] + ..., in this order; bf16 in f32, rounded once. The
// result may be one of the sources. f32, f64 or bf16.
void sum_ranks(std::span<const std::byte* const> sources, DType dtype, std::int64_t count,
               std::byte* result);

}  // namespace strata
